//! The search index: behind the log, never in an append's way.
//!
//! Each session notes how far it is indexed. A search first brings the index up to date, a
//! chunk of many sessions at a time. A second search waits for a session that the first one
//! indexes. The index knows which words occur. The events themselves say whether the words
//! are next to each other, by the same rules as in every other store.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use stepwell::backend::{
    Key, Question, Row, SEARCHABLE_KINDS, Shown, TxnContext, read, searchable, words,
};
use stepwell::log::Redactor;
use stepwell::model::Time;
use stepwell::store::query::{Found, Hit, Rank, Search};
use stepwell::{Event, Result, Seq};
use tokio_postgres::types::Type;

use crate::list::Conditions;
use crate::rows::{
    EVENT_COLUMNS, EVENT_WIDTH, PgRows, SESSION_TABLES, blob, number, read_event, seq,
};
use crate::transport::params;

/// How many events one transaction indexes.
const CHUNK_EVENTS: i64 = 2_000;

/// Ranking looks at this many of the newest hits.
const RANKED: i64 = 10_000;

/// How many of the newest events tell how common words are, and that those are which one in so many has.
const SAMPLE: i64 = 2_000;
const COMMON: i64 = 100;

/// How many hits are looked into at a time.
const LOOKED: i64 = 100;

/// The longest word of the index; a longer one is known by its front. PostgreSQL's own
/// limit is 2046 bytes.
const MAX_WORD: usize = 256;

/// PostgreSQL counts places up to here, and at most so many for each word.
const MAX_PLACE: usize = 16_383;
const MAX_PLACES: usize = 255;

/// The most bytes of all words of one event: PostgreSQL's limit, less what it adds.
const MAX_WORDS: usize = 900_000;

/// A session that is not indexed to its end, and how many of its events wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    key: Key,
    pub(crate) events: i64,
}

/// The sessions that are not indexed to their end.
pub(crate) fn pending(rows: &PgRows<'_>) -> Result<Vec<Pending>> {
    let sql = "SELECT h.session, greatest(h.seq - coalesce(i.seq, 0), 0) FROM stepwell.heads h \
         LEFT JOIN stepwell.indexed i ON i.namespace = h.namespace AND i.session = h.session \
         WHERE h.namespace = $1 AND h.unindexed ORDER BY h.session";
    let found = rows.all(sql, params![rows.namespace => INT4])?;
    found
        .iter()
        .map(|row| Ok(Pending { key: rows.get(row, 0)?, events: rows.get(row, 1)? }))
        .collect()
}

/// Sessions that are indexed together: as many as have so many events, and at least one.
pub(crate) fn batches(mut pending: &[Pending]) -> Vec<&[Pending]> {
    let mut batches = Vec::new();
    while !pending.is_empty() {
        let mut events = 0;
        let fits = pending.iter().take_while(|it| {
            events += it.events + 1;
            events <= CHUNK_EVENTS
        });
        let (batch, rest) = pending.split_at(fits.count().max(1));
        batches.push(batch);
        pending = rest;
    }
    batches
}

/// Is the server one that only reads?
pub(crate) fn is_standby(rows: &PgRows<'_>) -> Result<bool> {
    let row = rows.one("SELECT pg_is_in_recovery()", params![])?;
    row.map_or(Ok(false), |row| rows.get(&row, 0))
}

/// How many events are not indexed.
fn unseen(rows: &PgRows<'_>) -> Result<u64> {
    let sql = "SELECT coalesce(sum(h.seq - i.seq), 0)::bigint FROM stepwell.heads h \
         JOIN stepwell.indexed i ON i.namespace = h.namespace AND i.session = h.session \
         WHERE h.namespace = $1 AND h.unindexed AND h.seq > i.seq";
    let row = rows.one(sql, params![rows.namespace => INT4])?;
    row.map_or(Ok(0), |row| Ok(rows.get::<i64>(&row, 0)?.unsigned_abs()))
}

/// Is there more to index of a session?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    More,
    Nothing,
}

/// Indexes the next events of some sessions.
pub(crate) fn index(rows: &PgRows<'_>, batch: &[Pending]) -> Result<Left> {
    let keys: Vec<Key> = batch.iter().map(|it| it.key).collect();
    // In one order, so that two that index the same do not wait for each other in a circle.
    let sql = "SELECT session, seq FROM stepwell.indexed \
         WHERE namespace = $1 AND session = ANY ($2) ORDER BY session FOR UPDATE";
    let mut ends: BTreeMap<Key, i64> = BTreeMap::new();
    for row in rows.all(sql, params![rows.namespace => INT4, keys => INT8_ARRAY])? {
        ends.insert(rows.get(&row, 0)?, rows.get(&row, 1)?);
    }
    let found = unindexed(rows, &ends)?;
    let mut docs = Docs::default();
    for row in &found {
        let (key, event) = (rows.get(row, EVENT_WIDTH)?, read_event(rows, row)?);
        ends.insert(key, number(event.seq));
        if let Some(text) = event_of(rows, &event)?.as_ref().and_then(searchable) {
            docs.add(key, event.seq, event.at, &text);
        }
    }
    docs.insert(rows)?;
    let (keys, seqs): (Vec<Key>, Vec<i64>) = ends.into_iter().unzip();
    rows.run(
        "UPDATE stepwell.indexed i SET seq = e.seq FROM unnest($2, $3) AS e (session, seq) \
         WHERE i.namespace = $1 AND i.session = e.session",
        params![rows.namespace => INT4, keys => INT8_ARRAY, seqs => INT8_ARRAY],
    )?;
    let full = found.len() >= usize::try_from(CHUNK_EVENTS).unwrap_or(usize::MAX);
    // An append that comes meanwhile leaves the mark where it is.
    rows.run(
        "UPDATE stepwell.heads h SET unindexed = false FROM unnest($2, $3) AS e (session, seq) \
         WHERE h.namespace = $1 AND h.session = e.session AND h.seq <= e.seq",
        params![rows.namespace => INT4, keys => INT8_ARRAY, seqs => INT8_ARRAY],
    )?;
    Ok(if full { Left::More } else { Left::Nothing })
}

/// The next events of sessions after these ends, one session after another.
fn unindexed(rows: &PgRows<'_>, ends: &BTreeMap<Key, i64>) -> Result<Vec<tokio_postgres::Row>> {
    let (keys, seqs): (Vec<Key>, Vec<i64>) = ends.iter().unzip();
    let sql = format!(
        "SELECT e.*, i.session FROM unnest($2, $3) WITH ORDINALITY AS i (session, after, n) \
         CROSS JOIN LATERAL (SELECT {EVENT_COLUMNS} FROM stepwell.events \
         WHERE namespace = $1 AND session = i.session AND seq > i.after ORDER BY seq LIMIT $4) e \
         ORDER BY i.n, e.seq LIMIT $4"
    );
    rows.all(
        &sql,
        params![
            rows.namespace => INT4, keys => INT8_ARRAY, seqs => INT8_ARRAY, CHUNK_EVENTS => INT8,
        ],
    )
}

/// An event that can be found. What is damaged says nothing; verification is where it is reported.
fn event_of(rows: &PgRows<'_>, row: &Row<'_>) -> Result<Option<Event>> {
    if !SEARCHABLE_KINDS.iter().any(|kind| kind.as_str() == row.kind) {
        return Ok(None);
    }
    let event = row.open(&mut |digest| blob::get(rows, digest));
    Ok(event.ok().map(|event| event.event))
}

/// Events' words as columns.
#[derive(Default)]
struct Docs {
    sessions: Vec<Key>,
    seqs: Vec<i64>,
    ats: Vec<i64>,
    words: Vec<String>,
    whole: Vec<bool>,
}

impl Docs {
    fn add(&mut self, session: Key, seq: Seq, at: Time, text: &str) {
        let (words, whole) = vector(text);
        self.sessions.push(session);
        self.seqs.push(number(seq));
        self.ats.push(at.as_micros());
        self.words.push(words);
        self.whole.push(whole);
    }

    fn insert(&self, rows: &PgRows<'_>) -> Result<()> {
        rows.run(
            "INSERT INTO stepwell.docs (session, seq, namespace, at, words, whole) \
             SELECT d.session, d.seq, $1, d.at, d.words::tsvector, d.whole \
             FROM unnest($2, $3, $4, $5, $6) AS d (session, seq, at, words, whole) \
             ON CONFLICT DO NOTHING",
            params![
                rows.namespace => INT4, self.sessions => INT8_ARRAY, self.seqs => INT8_ARRAY,
                self.ats => INT8_ARRAY, self.words => TEXT_ARRAY, self.whole => BOOL_ARRAY,
            ],
        )
    }
}

/// A text's words with their places, in PostgreSQL's language, and whether they are all
/// there.
fn vector(text: &str) -> (String, bool) {
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let (mut bytes, mut whole) = (0, true);
    for (n, word) in words(text).enumerate() {
        let word = front(&word.text).to_owned();
        let size = word.len();
        let known = places.entry(word).or_insert_with(|| {
            bytes += size + 2;
            Vec::new()
        });
        if known.len() < MAX_PLACES && n < MAX_PLACE {
            bytes += 2;
            known.push(n + 1);
        }
        if bytes > MAX_WORDS {
            whole = false;
            break;
        }
    }
    let mut vector = String::new();
    for (word, places) in places {
        let _ = write!(vector, "'{word}'");
        for (n, place) in places.iter().enumerate() {
            let _ = write!(vector, "{}{place}", if n == 0 { ':' } else { ',' });
        }
        vector.push(' ');
    }
    (vector, whole)
}

/// The front of a word, by which the index knows it.
fn front(word: &str) -> &str {
    &word[..word.floor_char_boundary(MAX_WORD)]
}

/// The question in PostgreSQL's language. Words are letters and digits only.
fn in_sql(question: &Question) -> String {
    let term = |term: stepwell::backend::Term<'_>| {
        let cut = front(term.word);
        let star = if term.open || cut.len() < term.word.len() { ":*" } else { "" };
        format!("'{cut}'{star}")
    };
    question.terms().map(term).collect::<Vec<_>>().join(" & ")
}

/// A search, and what takes the secrets out of its answer.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) search: &'a Search,
    pub(crate) redactor: &'a Redactor,
}

/// Looks a question up in the index as it stands.
pub(crate) fn find(
    rows: &PgRows<'_>,
    context: TxnContext<'_>,
    asked: Asked<'_>,
) -> Result<Vec<Hit>> {
    let search = asked.search;
    let Some(question) = Question::parse(&search.text) else {
        return Ok(Vec::new());
    };
    question.answer(search.limit, |question| hits(rows, context, asked, question))
}

fn hits(
    rows: &PgRows<'_>,
    context: TxnContext<'_>,
    asked: Asked<'_>,
    question: &Question,
) -> Result<Vec<Hit>> {
    let (search, mut hits) = (asked.search, Vec::new());
    let words = how_common(rows, question)?;
    let mut after = None;
    let mut passed = 0;
    while hits.len() < search.limit {
        let places = match search.rank {
            Rank::Newest => newest(
                rows,
                Conditions::of(rows, context, &search.filter)?,
                (question, words),
                after,
            )?,
            Rank::Relevance => best(
                rows,
                Conditions::of(rows, context, &search.filter)?,
                (question, words),
                passed,
            )?,
        };
        passed += LOOKED;
        after = places.last().copied();
        let last = places.len() < usize::try_from(LOOKED).unwrap_or(usize::MAX);
        for place in places {
            hits.extend(hit(rows, place, asked, question)?);
            if hits.len() == search.limit {
                break;
            }
        }
        if last {
            break;
        }
    }
    Ok(hits)
}

/// Where a hit may be.
#[derive(Clone, Copy, Debug)]
struct Spot {
    key: Key,
    seq: i64,
    at: i64,
}

fn spots(rows: &PgRows<'_>, sql: &str, conditions: &Conditions) -> Result<Vec<Spot>> {
    let spot =
        |row| Ok(Spot { key: rows.get(row, 0)?, seq: rows.get(row, 1)?, at: rows.get(row, 2)? });
    rows.all(sql, &conditions.params())?.iter().map(spot).collect()
}

/// How often words occur, which says how they are found. The server's own guess is that every word it
/// has not counted is as common as the last one that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occurrence {
    /// The newest events are walked: soon there are enough.
    Common,
    /// The index of words is asked: it has few.
    Rare,
}

/// Looks for words among some of the newest events.
fn how_common(rows: &PgRows<'_>, question: &Question) -> Result<Occurrence> {
    let sql = format!(
        "SELECT count(*) FROM (SELECT words FROM stepwell.docs WHERE namespace = $1 \
         ORDER BY at DESC, session DESC, seq DESC LIMIT {SAMPLE}) d WHERE d.words @@ $2::tsquery"
    );
    let row = rows.one(&sql, params![rows.namespace => INT4, in_sql(question) => TEXT])?;
    let found: i64 = row.map_or(Ok(0), |row| rows.get(&row, 0))?;
    Ok(if found * COMMON >= SAMPLE { Occurrence::Common } else { Occurrence::Rare })
}

/// The table that hits come from, as `d`, and what has to stand before the statement: rare words are
/// looked up before anything else is done.
fn source(how: Occurrence, team: &str, words: &str) -> (String, &'static str) {
    match how {
        Occurrence::Common => (String::new(), "stepwell.docs"),
        Occurrence::Rare => (
            format!(
                "WITH found AS MATERIALIZED (SELECT namespace, session, seq, at, words, whole \
                 FROM stepwell.docs WHERE namespace = {team} AND words @@ {words}::tsquery \
                 UNION ALL SELECT namespace, session, seq, at, words, whole FROM stepwell.docs \
                 WHERE namespace = {team} AND NOT whole AND NOT words @@ {words}::tsquery) "
            ),
            "found",
        ),
    }
}

/// The newest hits after one that was looked at.
fn newest(
    rows: &PgRows<'_>,
    mut conditions: Conditions,
    (question, how): (&Question, Occurrence),
    after: Option<Spot>,
) -> Result<Vec<Spot>> {
    let words = conditions.bind(in_sql(question), Type::TEXT);
    let team = conditions.bind(rows.namespace, Type::INT4);
    conditions.require(format!("d.namespace = {team}"));
    conditions.require(format!("(d.words @@ {words}::tsquery OR NOT d.whole)"));
    if let Some(Spot { at, key, seq }) = after {
        let at = conditions.bind(at, Type::INT8);
        let key = conditions.bind(key, Type::INT8);
        let seq = conditions.bind(seq, Type::INT8);
        conditions.require(format!("(d.at, d.session, d.seq) < ({at}, {key}, {seq})"));
    }
    let (before, docs) = source(how, &team, &words);
    let sql = format!(
        "{before}SELECT d.session, d.seq, d.at FROM {docs} d JOIN ({SESSION_TABLES}) \
         ON h.namespace = d.namespace AND h.session = d.session WHERE {} \
         ORDER BY d.at DESC, d.session DESC, d.seq DESC LIMIT {LOOKED}",
        conditions.sql()
    );
    spots(rows, &sql, &conditions)
}

/// The most relevant of the newest hits, past those that were looked at.
fn best(
    rows: &PgRows<'_>,
    mut conditions: Conditions,
    (question, how): (&Question, Occurrence),
    passed: i64,
) -> Result<Vec<Spot>> {
    let words = conditions.bind(in_sql(question), Type::TEXT);
    let team = conditions.bind(rows.namespace, Type::INT4);
    let (before, docs) = source(how, &team, &words);
    let also = if before.is_empty() { "WITH " } else { ", " };
    let sql = format!(
        "{before}{also}d AS MATERIALIZED (SELECT session, seq, at, \
         ts_rank(words, {words}::tsquery, 1) AS rank FROM {docs} \
         WHERE namespace = {team} AND (words @@ {words}::tsquery OR NOT whole) \
         ORDER BY at DESC LIMIT {RANKED}) \
         SELECT d.session, d.seq, d.at FROM d JOIN ({SESSION_TABLES}) ON h.session = d.session \
         WHERE {} ORDER BY d.rank DESC, d.at DESC, d.session DESC, d.seq DESC \
         LIMIT {LOOKED} OFFSET {passed}",
        conditions.sql()
    );
    spots(rows, &sql, &conditions)
}

/// A hit, if the event says what is asked for.
fn hit(
    rows: &PgRows<'_>,
    spot: Spot,
    asked: Asked<'_>,
    question: &Question,
) -> Result<Option<Hit>> {
    let sql = "SELECT id FROM stepwell.sessions WHERE namespace = $1 AND key = $2";
    let params = params![rows.namespace => INT4, spot.key => INT8];
    let Some(row) = rows.one(sql, params)? else { return Ok(None) };
    let Ok(session) = rows.get::<&str>(&row, 0)?.parse() else { return Ok(None) };
    let Some(row) = read::own_row(rows, spot.key, seq(spot.seq))? else { return Ok(None) };
    let Some(event) = event_of(rows, &row)? else { return Ok(None) };
    let Some(text) = searchable(&event) else { return Ok(None) };
    let folded: Vec<String> = words(&text).map(|word| word.text).collect();
    let folded: Vec<&str> = folded.iter().map(String::as_str).collect();
    if question.find(&folded).is_none() {
        return Ok(None);
    }
    let snippet = Shown::of(&event, asked.redactor).snippet(question);
    let (at, kind) = (row.at, row.kind.into_owned());
    let (seq, role, source) = (row.seq, event.role(), None);
    Ok(Some(Hit { session, seq, at, kind, role, source, snippet }))
}

/// A search by someone who may not write sees what is indexed, and how much is not.
pub(crate) fn find_only(
    rows: &PgRows<'_>,
    context: TxnContext<'_>,
    asked: Asked<'_>,
) -> Result<Found> {
    Ok(Found { hits: find(rows, context, asked)?, unseen: unseen(rows)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_words_with_places() {
        let (vector, whole) = vector("Fix the auth, FIX it");
        assert_eq!(vector, "'auth':3 'fix':1,4 'it':5 'the':2 ");
        assert!(whole);
    }

    #[test]
    fn sessions_are_indexed_together_as_far_as_they_are_short() {
        let pending = |events: &[i64]| -> Vec<Pending> {
            events
                .iter()
                .enumerate()
                .map(|(n, events)| Pending { key: n as Key, events: *events })
                .collect()
        };
        let sizes = |events: &[i64]| -> Vec<usize> {
            batches(&pending(events)).into_iter().map(<[Pending]>::len).collect()
        };
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&[9; 500]), [200, 200, 100]);
        assert_eq!(sizes(&[1, 1_000_000, 1, 1]), [1, 1, 2]);
        assert_eq!(sizes(&[0; 4_001]), [2_000, 2_000, 1]);
    }

    #[test]
    fn long_words_and_long_texts_stay_within_the_servers_limits() {
        let long = "x".repeat(5_000);
        assert_eq!(vector(&long).0.len(), MAX_WORD + "'':1 ".len());
        assert_eq!(
            in_sql(&Question::parse(&long).unwrap()),
            format!("'{}':*", "x".repeat(MAX_WORD))
        );
        let many: String = (0..200_000).map(|n| format!("w{n} ")).collect();
        let (vector, whole) = vector(&many);
        assert!(!whole && vector.len() < 4_000_000);
    }
}
