use std::path::PathBuf;

use stepwell::store::Indexed;
use stepwell::store::query::{Family, Filter, Found, Hit, Rank, Search, Snippet, SystemPrompts};
use stepwell_terminal::text::{moment, visible};
use stepwell_terminal::{Style, note};
use stepwell_wire::SearchHit;
use stepwell_workspace::{NamedWell, Opening, known_stores};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::progress::progress;
use crate::selection::Selection;

/// Searches tasks, messages, tools' arguments and output, file paths and errors.
///
/// All words must occur, in upper or lower case; the last may be a prefix. "Quoted words" must
/// stand together; begin* matches a prefix. Each message is one hit.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The words.
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Lists the most relevant first, instead of the newest.
    #[arg(long)]
    rank: bool,
    /// Lists at most this many hits.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Searches all of your known stores.
    #[arg(long)]
    everywhere: bool,
    /// Also searches what agents are told before they begin.
    #[arg(long)]
    system: bool,
    #[command(flatten)]
    selection: Selection,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let text = args.words.join(" ");
    if !text.chars().any(char::is_alphanumeric) {
        return Err(Failure::new(Exit::Usage, "there is no word to search for"));
    }
    let rank = if args.rank { Rank::Relevance } else { Rank::Newest };
    // What is filtered here is filtered after the store has counted.
    let limit = if args.selection.filters_more() { usize::MAX } else { args.limit };
    let system = if args.system { SystemPrompts::Searched } else { SystemPrompts::Skipped };
    let search = Search { rank, limit, system, ..Search::new(text.clone()) };
    let mut hits: Vec<FoundHit> = Vec::new();
    let mut unseen = 0;
    if !args.everywhere && !app.workspace.place.has_store() {
        // Nothing to search is not the same as nothing found.
        note("There is no store here, so nothing was searched.");
        note("hint: stepwell search --everywhere looks into all of your stores");
        return Ok(Exit::Done);
    }
    // A search brings the index up to date, where that is possible.
    let wells = if args.everywhere {
        let wells = known_stores::open_all(&app.workspace, Opening::WriteIfPossible).into_iter();
        wells.map(|NamedWell { name, well }| (Some(name), well)).collect()
    } else {
        let here = app
            .workspace
            .place
            .has_store()
            .then(|| app.workspace.open_writable_if_possible(&app.workspace.place.store));
        here.transpose()?.map(|well| (None, well)).into_iter().collect::<Vec<_>>()
    };
    for (store, well) in wells {
        let filter = Filter { family: Family::Any, ..args.selection.filter(well.now()) };
        // What cannot be indexed is not found, and the search says so.
        let _ = well.store().maintain().catch_up(&|Indexed { done, all }| {
            let short = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
            progress(app, "new event", short(done), short(all));
        });
        let found: Found = well.search(&Search { filter, ..search.clone() })?;
        unseen += found.unseen;
        for hit in found.hits {
            let info = well.info(&hit.session)?;
            if args.selection.takes(&info) {
                hits.push(FoundHit { store: store.clone(), hit });
            }
        }
    }
    // Relevance means nothing across stores; the newest are the newest everywhere.
    if args.everywhere && !args.rank {
        hits.sort_by_key(|found| std::cmp::Reverse(found.hit.at));
    }
    hits.truncate(args.limit);
    hits.iter().try_for_each(|found| print(found, app))?;
    if unseen > 0 {
        note(format_args!(
            "{unseen} new events are not searched yet: this store is open for reading only"
        ));
    }
    if hits.is_empty() && !app.out.is_json() {
        app.out.line(format_args!("Nothing found for {}.", visible(&text)))?;
    }
    Ok(Exit::Done)
}

/// A hit, and where its session is.
struct FoundHit {
    store: Option<PathBuf>,
    hit: Hit,
}

fn print(FoundHit { store, hit }: &FoundHit, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        let store = store.as_ref().map(|store| store.display().to_string());
        return app.out.object(&SearchHit { store, ..hit.clone().into() });
    }
    let id = app.out.paint.paint(Style::Yellow, hit.session.as_str());
    let at = app.out.paint.paint(Style::Dim, &moment(hit.at));
    let store = store.as_ref().map(|store| store.display().to_string());
    let rest = hit.source.iter().chain(&store).map(|it| format!("  {}", visible(it)));
    let (seq, kind, rest) = (hit.seq, visible(&hit.kind), rest.collect::<String>());
    app.out.line(format_args!("{id} seq {seq}  {at}  {kind}{rest}"))?;
    app.out.line(format_args!("  {}", highlighted(&hit.snippet, app)))
}

fn highlighted(snippet: &Snippet, app: &App) -> String {
    let (mut text, mut end) = (String::new(), 0);
    for place in snippet.matches() {
        text.push_str(&visible(&snippet.text()[end..place.start]));
        let found = visible(&snippet.text()[place.clone()]);
        text.push_str(&app.out.paint.paint(Style::Red, &found));
        end = place.end;
    }
    text.push_str(&visible(&snippet.text()[end..]));
    text
}
