//! What commands answer, as an editor shows it.

use stepwell::log::Redactor;
use stepwell::model::{Phase, Role, counted};
use stepwell_files::rewind::{Done, Preview};
use stepwell_files::rewind_history::Direction;
use stepwell_runtime::command::{CompactionReply, MoveOutcome, MoveReply, PhaseReply, Reply};
use stepwell_wire::{FileVersion, FileVersionKind, ModelView};

use super::{first_line, listed};

/// An answer in words.
pub(super) fn words(reply: &Reply, redactor: &Redactor) -> String {
    match reply {
        Reply::Found(hits) => {
            let hit = |hit: &stepwell::store::query::Hit| {
                format!("- {} seq {}: {}", hit.session, hit.seq, hit.snippet.text())
            };
            listed(&hits.iter().map(hit).collect::<Vec<_>>(), "Nothing found.")
        }
        Reply::Rewind(it) => moved(it),
        Reply::CheckpointMade(made) => {
            format!("Checkpoint {} at seq {}.", made.checkpoint, made.seq)
        }
        Reply::Checkpoints(_, all) => {
            let line =
                |it: &stepwell_wire::CheckpointInfo| format!("- seq {}: {}", it.seq, it.name);
            let lines: Vec<String> = all.iter().map(line).collect();
            listed(&lines, "There are no checkpoints; /checkpoint NAME makes one.")
        }
        Reply::Forked(forked) => format!(
            "{} shares this session's past up to seq {}. Open it from the list of threads; here, \
             this session goes on.",
            forked.id, forked.at
        ),
        Reply::Diff(patches) => match patches.is_empty() {
            true => NO_FILE.to_owned(),
            false => {
                let patches: Vec<&str> = patches.iter().map(|patch| &*patch.diff).collect();
                format!("```diff\n{}\n```", patches.join("\n"))
            }
        },
        Reply::Files(files) => {
            listed(&files.versions.iter().map(version).collect::<Vec<_>>(), NO_FILE)
        }
        Reply::Exported(exported) => format!("The session is in {}.", exported.path.display()),
        Reply::Context(view) => context(view, redactor),
        Reply::Compaction(done) => compaction(done),
        Reply::CompactionUndone(it) => format!("The compaction at seq {} is undone.", it.undone),
        Reply::NoCompaction(_) => "There is no compaction to take back.".to_owned(),
        Reply::State(work) => match &work.state.goal {
            Some(goal) => format!("Goal: {goal}"),
            None => "Nobody said a goal; /goal TEXT does.".to_owned(),
        },
        Reply::Tasks(tasks) => {
            let line = |it: &stepwell::model::Task| format!("- [{}] {}", it.status, it.description);
            listed(&tasks.chosen.iter().map(line).collect::<Vec<_>>(), "Nothing is planned.")
        }
        Reply::Phase(it) => phase(it),
        _ => "Done.".to_owned(),
    }
}

const NO_FILE: &str = "No file was changed.";

fn moved(MoveReply { asked, way, outcome, .. }: &MoveReply) -> String {
    let preview = match outcome {
        MoveOutcome::Tried(Done::Rewound { preview, .. }) => preview,
        MoveOutcome::Tried(Done::Refused(preview)) => return refused(preview),
        MoveOutcome::Previewed(_) | MoveOutcome::CutOff(_) => return String::new(),
    };
    let files = counted(preview.plan.moves.len(), "file");
    let (what, back) = match (asked.undoes, way) {
        (None, _) => (format!("Rewound to seq {}", asked.to), "/undo"),
        (Some(_), Direction::Forth) => ("The last rewind is taken back".to_owned(), "/redo"),
        (Some(_), Direction::Back) => ("The last undo is taken back".to_owned(), "/undo"),
    };
    format!(
        "{what}, with {files}. {back} takes that back. The model sees the session as it was \
         there; the editor shows it so when it is loaded again."
    )
}

fn refused(preview: &Preview) -> String {
    let why = match preview.plan.conflicts.as_slice() {
        [] => "it would set aside what was done since".to_owned(),
        files => {
            let names: Vec<&str> = files.iter().map(|it| it.path.as_str()).collect();
            format!("someone else changed files since: {}", names.join(", "))
        }
    };
    format!("Nothing was done: {why}. With --force it is done all the same, and can be taken back.")
}

fn version(it: &FileVersion) -> String {
    let change = match it.change {
        FileVersionKind::Created => "created",
        FileVersionKind::Deleted => "deleted",
        FileVersionKind::Renamed => "renamed",
        FileVersionKind::Changed => "changed",
        FileVersionKind::Found => "found",
    };
    format!("- seq {}: {change} {}", it.seq, it.path)
}

fn compaction(done: &CompactionReply) -> String {
    match &done.answer.compacted {
        _ if done.answer.asked => "The run compacts it before its next call of a model.".to_owned(),
        Some(it) => format!(
            "Compacted: about {} tokens are {} now. `/compact undo` takes it back.",
            it.tokens_before, it.tokens_after
        ),
        None => "There is nothing to compact.".to_owned(),
    }
}

/// What the model would be sent.
fn context(view: &ModelView, redactor: &Redactor) -> String {
    let fits = view.context.map(|fits| format!(" of {fits}")).unwrap_or_default();
    let mut lines = vec![
        format!("About {}{fits} tokens:", view.tokens),
        format!("- instructions: {} tokens", view.instructions.tokens),
        format!("- {}: {} tokens", counted(view.tools.names.len(), "tool"), view.tools.tokens),
    ];
    for it in &view.messages {
        let role = match it.message.role {
            Role::System => "system",
            Role::User if !it.message.is_from_user() => "context",
            Role::User => "user",
            Role::Assistant => "agent",
            Role::Tool => "tools",
        };
        let text = first_line(&redactor.redact(&it.message.text()));
        lines.push(format!("- seq {}, {role}, {} tokens: {text}", it.seq, it.tokens));
    }
    lines.join("\n")
}

fn phase(reply: &PhaseReply) -> String {
    match reply {
        PhaseReply::Is(info) if info.next.is_empty() => {
            format!("The phase is {}, which is final.", info.phase)
        }
        PhaseReply::Is(info) => {
            format!("The phase is {}; next: {}.", info.phase, names(&info.next))
        }
        PhaseReply::NoPhases(_) => "This session has no phases.".to_owned(),
        PhaseReply::Unknown { name, set, .. } => {
            format!("There is no phase {name:?}; there are {}.", names(set.phases()))
        }
        PhaseReply::Illegal { from, to, legal, .. } => {
            format!("{from} cannot move to {to}; it can move to {}.", names(legal))
        }
    }
}

fn names(phases: &[Phase]) -> String {
    match phases {
        [] => "none".to_owned(),
        phases => phases.iter().map(|phase| phase.as_str()).collect::<Vec<_>>().join(", "),
    }
}
