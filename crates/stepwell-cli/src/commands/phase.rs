use stepwell::log::Head;
use stepwell::model::{Move, Phase, PhaseSet};
use stepwell::sqlite::Access;
use stepwell_wire::PhaseInfo;
use stepwell_workspace::housekeeping::tidy;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// Shows which phase a session's work is in, or moves it to another.
///
/// A session has the phases of its set, and moves as the set allows: see stepwell run
/// --phases, and stepwell agent. Whoever runs it is asked to move it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The phase to move to.
    name: Option<String>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let Some(name) = &args.name else {
        let (well, id) = app.workspace.open_session(&args.session, Access::Read)?;
        answer(&well.info(&id)?.head, app)?;
        return Ok(Exit::Done);
    };
    let (well, id) = app.workspace.open_session(&args.session, Access::Write)?;
    let info = well.info(&id)?;
    info.refuse_half_rewound()?;
    let head = info.head;
    let (set, from) = phases(&head)?;
    let to = set.parse(name).ok_or_else(|| {
        Failure::new(Exit::Failed, format_args!("{id}: there is no phase {name:?} in its set"))
            .hint(format_args!("the phases are {}", names(set.phases())))
    })?;
    if let Move::Illegal(legal) = set.judge(from, to, head.discuss_returns) {
        let refused = format!("{id}: {from} cannot move to {to}");
        return Err(match &legal[..] {
            [] => Failure::new(Exit::Failed, format_args!("{refused}; {from} is final")),
            [first, ..] => {
                let message = format!("{refused}; it can move to {}", names(&legal));
                Failure::new(Exit::Failed, message)
                    .hint(format_args!("stepwell phase {id} {first}"))
            }
        });
    }
    well.enter_phase(&id, to)?;
    answer(&well.info(&id)?.head, app)?;
    tidy(&app.workspace, &well);
    Ok(Exit::Done)
}

/// The set of a session's phases, and the one that it is in.
fn phases(head: &Head) -> Result<(PhaseSet, Phase)> {
    head.phases.zip(head.phase).ok_or_else(|| {
        Failure::new(Exit::Failed, format_args!("{} has no phases", head.id))
            .hint("stepwell run \"TASK\" --phases workflow begins a session with phases")
    })
}

fn answer(head: &Head, app: &mut App) -> Result<()> {
    let (set, phase) = phases(head)?;
    let next = set.next(phase, head.discuss_returns);
    let then = match &next[..] {
        [] => ", which is final".to_owned(),
        next => format!("; next: {}", names(next)),
    };
    let line = format!("{} is in phase {phase}{then}", head.id);
    let (id, resumable) = (head.id.clone(), set.resumable(phase));
    app.out.answer(&PhaseInfo { id, phases: set, phase, next, resumable }, line)
}

fn names(phases: &[Phase]) -> String {
    phases.iter().map(|phase| phase.as_str()).collect::<Vec<_>>().join(", ")
}
