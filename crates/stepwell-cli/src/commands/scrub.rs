use stepwell::sqlite::Access;
use stepwell::store::query::TrashScope;
use stepwell::upkeep::{ScrubMatches, ScrubPattern};
use stepwell::{SessionId, Stepwell};
use stepwell_terminal::note;
use stepwell_terminal::text::count;
use stepwell_wire::Scrubbed;
use stepwell_workspace::StoreLogs;

use crate::app::App;
use crate::ask::{Consent, Unasked};
use crate::failure::{Exit, Failure, Result};

/// Erases what matches a pattern from a session, or from all, the trash included.
///
/// What was there is gone from events, files' contents and the search index; "scrubbed"
/// stands in its place, and the log says that it was scrubbed. The pattern itself is not
/// recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A regular expression.
    pattern: String,
    /// The session; without one, every session.
    session: Option<String>,
    /// Takes the pattern as it stands, not as a regular expression.
    #[arg(long, short = 'F')]
    fixed: bool,
    /// The reason, for the log.
    #[arg(long, value_name = "TEXT")]
    rule: Option<String>,
    #[command(flatten)]
    consent: Consent,
}

/// How often sessions are looked at again for what came while others were scrubbed.
const PASSES: usize = 10;

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let compile = if args.fixed { ScrubPattern::literal } else { ScrubPattern::new };
    let pattern = compile(&args.pattern, args.rule.as_deref())
        .map_err(|error| Failure::new(Exit::Usage, error))?;
    let mut found = look(args, &pattern, app)?;
    let matching = |found: &[ScrubMatches]| found.iter().map(|found| found.events).sum::<usize>();
    let only = found.first().filter(|_| args.session.is_some()).map(|it| it.session.clone());
    let logs = StoreLogs::of(&app.workspace.place.store, only);
    let lines = logs.count_matches(&pattern);
    let in_logs: usize = lines.iter().map(|(_, lines)| lines).sum();
    let erased = matching(&found);
    if erased > 0 || in_logs > 0 {
        for found in found.iter().filter(|found| found.events > 0) {
            let place = if found.trashed { " (in the trash)" } else { "" };
            note(format_args!("{}{place}: {}", found.session, count(found.events, "event")));
        }
        for (of, lines) in lines {
            note(format_args!("{of}: {}", count(lines, "line")));
        }
        let what = count(erased + in_logs, "place");
        args.consent.ask(
            app.terminal,
            &format!("Erase the matches in {what} for good?"),
            Unasked::Refuse,
        )?;
        let well = app.workspace.open_existing(Access::Write)?;
        for _ in 0..PASSES {
            for found in found.iter().filter(|found| found.events > 0) {
                erase(&well, &found.session, &pattern, app)?;
            }
            // What was recorded meanwhile is looked at as well.
            found = look(args, &pattern, app)?;
            if matching(&found) == 0 {
                break;
            }
        }
        logs.scrub(&pattern)?;
    }
    conclude(&found, erased + in_logs, app)
}

/// Says what could not be erased. That something matches nothing is only said if all of it
/// was seen.
fn conclude(found: &[ScrubMatches], erased: usize, app: &mut App) -> Result<Exit> {
    let mut unseen = false;
    for ScrubMatches { session: id, unseen: why, .. } in found {
        if let Some(why) = why {
            unseen = true;
            note(format_args!(
                "error: {id} was not scrubbed: {why}; stepwell purge {id} erases it"
            ));
        }
    }
    if unseen {
        return Ok(Exit::Damaged);
    }
    let left: usize = found.iter().map(|found| found.events).sum();
    if left > 0 {
        let message =
            format!("{} still match: they are written faster than erased", count(left, "event"));
        return Err(Failure::new(Exit::Busy, message));
    }
    let shared: usize = found.iter().map(|found| found.shared).sum();
    if shared > 0 {
        let message = format!("matching events that are shared with other sessions: {shared}");
        return Err(Failure::new(Exit::Failed, message)
            .hint("stepwell scrub PATTERN, without a session, erases them where they are kept"));
    }
    if erased == 0 && !app.out.is_json() {
        app.out.line("Nothing matches.")?;
    }
    Ok(Exit::Done)
}

/// What matches, in the session that is named or in all of them.
fn look(args: &Args, pattern: &ScrubPattern, app: &App) -> Result<Vec<ScrubMatches>> {
    if let Some(name) = &args.session {
        let (well, id) = app.workspace.open_session_in(TrashScope::Anywhere, name, Access::Read)?;
        return Ok(vec![well.find_to_scrub_in(&id, pattern)?]);
    }
    Ok(match app.workspace.open_if_present()? {
        Some(well) => well.find_to_scrub(pattern)?,
        None => Vec::new(),
    })
}

fn erase(well: &Stepwell, id: &SessionId, pattern: &ScrubPattern, app: &mut App) -> Result<()> {
    let Some(done) = well.scrub(id, pattern)? else { return Ok(()) };
    let (events, seq) = (done.events, done.seq);
    let line = format!("Scrubbed {} in {id}, recorded at seq {seq}", count(events, "event"));
    app.out.answer(&Scrubbed { session: done.session, events, scrubbed_at: seq }, line)
}
