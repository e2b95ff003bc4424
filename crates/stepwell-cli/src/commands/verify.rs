use stepwell::SessionId;
use stepwell::sqlite::Access;
use stepwell::store::query::TrashScope;
use stepwell::store::{Derived, Verdict};
use stepwell_terminal::text::count;
use stepwell_terminal::{Style, note};
use stepwell_wire::Verified;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Re-reads sessions event by event and checks that everything is as it was recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session; without one, every session, the trash included.
    session: Option<String>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, ids) = match &args.session {
        Some(name) => {
            let (_, id) =
                app.workspace.open_session_in(TrashScope::Anywhere, name, Access::Read)?;
            (app.workspace.open_writable_if_possible(&app.workspace.place.store)?, vec![id])
        }
        None => {
            if app.workspace.open_if_present()?.is_none() {
                return match app.out.is_json() {
                    true => Ok(Exit::Done),
                    false => app.out.line("No sessions yet.").map(|()| Exit::Done),
                };
            }
            // Damage that is found is remembered, where that is possible.
            let well = app.workspace.open_writable_if_possible(&app.workspace.place.store)?;
            let ids = well.every_id()?;
            (well, ids)
        }
    };
    let (mut events, mut broken) = (0, 0);
    well.verify_each(&ids, |id, verdict| {
        events += verdict.intact;
        broken += usize::from(!verdict.is_sound());
        print(id, &verdict, args.session.is_some(), app)
    })?;
    if !app.out.is_json() && args.session.is_none() {
        let all = format!("{}, {}", count(ids.len(), "session"), events_of(events));
        let line = match broken {
            0 => format!("Verified {all}: all sound."),
            n => format!("Verified {all}: {n} not sound."),
        };
        app.out.line(line)?;
    }
    if broken > 0 {
        note("hint: stepwell doctor --repair rebuilds what follows from the events");
        return Ok(Exit::Damaged);
    }
    Ok(Exit::Done)
}

fn events_of(n: u64) -> String {
    count(usize::try_from(n).unwrap_or(usize::MAX), "event")
}

fn print(id: &SessionId, verdict: &Verdict, named: bool, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        return app.out.object(&Verified::new(id.clone(), verdict));
    }
    let intact = events_of(verdict.intact);
    let gone = match (verdict.scrubbed, verdict.pruned) {
        (0, 0) => String::new(),
        (n, 0) => format!(", {n} of them scrubbed"),
        (0, n) => format!(", {n} of them pruned"),
        (n, pruned) => format!(", {n} of them scrubbed and {pruned} pruned"),
    };
    if let Some(damage) = &verdict.damage {
        let word = app.out.paint.paint(Style::Red, "damaged");
        let (seq, what) = (damage.seq, stepwell_terminal::text::one_line(&damage.what));
        app.out.line(format_args!("{id} {word} at seq {seq}: {what} ({intact} intact)"))
    } else if verdict.derived == Derived::Wrong {
        let word = app.out.paint.paint(Style::Yellow, "stale");
        app.out.line(format_args!("{id} {word}: its log is intact ({intact}), its head is not"))
    } else if named {
        app.out.line(format_args!("{id} sound: {intact}{gone}"))
    } else {
        Ok(())
    }
}
