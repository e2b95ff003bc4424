//! What commands answer, for programs: one JSON object a line.

use stepwell::work::compactions::ViewChange;
use stepwell_files::rewind::Done;
use stepwell_runtime::command::{
    MoveOutcome, MoveReply, PhaseReply, Reply, SettingReply, SettingShown, rewind_answer,
};
use stepwell_wire::{
    Answer, CompactionDiff, Deleted, HandedOver, LedgerEntry, Restored, SearchHit, Setting,
    SettingUnset, TaskInfo, UnfinishedRewind, ViewMove,
};
use stepwell_workspace::imported;

use crate::wording;

/// The objects of an answer, each as a line.
///
/// # Errors
/// If one cannot be written as JSON.
pub fn json(reply: &Reply) -> serde_json::Result<Vec<String>> {
    match reply {
        Reply::Details(page) => one(&page.details.answer),
        Reply::Label(it) => one(it),
        Reply::Tags(it) => one(it),
        Reply::Pin(it) => one(it),
        Reply::MessagePin(it) => one(&it.answer),
        Reply::Checkpoints(_, all) => each(all),
        Reply::CheckpointMade(it) => one(it),
        Reply::Rewind(moved) => rewind(moved),
        Reply::Forked(it) => one(it),
        Reply::Compaction(it) => one(&it.answer),
        Reply::CompactionUndone(it) => one(it),
        Reply::CompactionDiff(id, changes) => {
            let (mut hidden, mut summaries) = (Vec::new(), Vec::new());
            for change in changes {
                let (list, it) = match change {
                    ViewChange::Kept(_) => continue,
                    ViewChange::Hidden(it) => (&mut hidden, it),
                    ViewChange::Summary(it) => (&mut summaries, it),
                };
                list.push(ViewMove { seq: it.seq, message: it.message.clone() });
            }
            one(&CompactionDiff { id: id.clone(), hidden, summaries })
        }
        Reply::Exported(it) => one(&stepwell_wire::Exported {
            file: it.path.display().to_string(),
            format: it.format.as_str().to_owned(),
            sessions: it.written.sessions,
            events: it.written.events,
        }),
        Reply::HandedOver(it) => one(&HandedOver::from(&**it)),
        Reply::Diff(patches) => each(patches),
        Reply::Files(files) => each(&files.versions),
        Reply::Context(view) => one(&**view),
        Reply::State(work) => one(&work.state),
        Reply::Tasks(it) | Reply::TasksChanged(it) => {
            it.chosen.iter().map(|task| object(&TaskInfo::new(task, &it.all))).collect()
        }
        Reply::Phase(PhaseReply::Is(it)) => one(it),
        Reply::Deleted { removal, .. } => {
            removal.taken.iter().map(|id| object(&Deleted { deleted: id.clone() })).collect()
        }
        Reply::Restored(removal) => {
            removal.taken.iter().map(|id| object(&Restored { restored: id.clone() })).collect()
        }
        Reply::Gates(gates) => each(gates),
        Reply::Found(hits) => hits.iter().map(|it| object(&SearchHit::from(it.clone()))).collect(),
        Reply::Models(it) => one(it),
        Reply::Ledger(ledger) => {
            ledger.lines.iter().map(|line| object(&LedgerEntry::from(line))).collect()
        }
        Reply::Settings(all) => all.iter().map(|it| object(&setting(it))).collect(),
        Reply::Setting(SettingReply::Is(it) | SettingReply::Set(it)) => one(&setting(it)),
        Reply::Setting(SettingReply::Unset { key, was_set, file }) => one(&SettingUnset {
            key: key.clone(),
            unset: *was_set,
            source: file.display().to_string(),
        }),
        Reply::Servers { servers, .. } => each(servers),
        Reply::Imported(report) => {
            let of = report.places.iter().flat_map(|place| {
                let sessions = place.report.sessions.iter();
                sessions.map(|it| imported(it, &place.path, place.format))
            });
            of.map(|it| object(&it)).collect()
        }
        Reply::RewindFinished { .. }
        | Reply::NoCompaction(_)
        | Reply::Phase(_)
        | Reply::Setting(SettingReply::OnlyUsers(_)) => Ok(Vec::new()),
    }
}

fn object(object: &impl Answer) -> serde_json::Result<String> {
    serde_json::to_string(object)
}

fn one(answer: &impl Answer) -> serde_json::Result<Vec<String>> {
    Ok(vec![object(answer)?])
}

fn each(answers: &[impl Answer]) -> serde_json::Result<Vec<String>> {
    answers.iter().map(object).collect()
}

fn rewind(moved: &MoveReply) -> serde_json::Result<Vec<String>> {
    let MoveReply { id, asked, outcome, .. } = moved;
    match outcome {
        MoveOutcome::Previewed(preview) => one(&rewind_answer(id, asked, preview, None)),
        MoveOutcome::Tried(Done::Rewound { seq, checkpoint, preview }) => {
            one(&rewind_answer(id, asked, preview, Some((*seq, checkpoint))))
        }
        MoveOutcome::CutOff(Some(half)) => one(&UnfinishedRewind {
            id: id.clone(),
            to: half.asked.to,
            scope: half.asked.scope,
            cut_off: half.began,
            done: false,
            files: half.moves.iter().map(Into::into).collect(),
            left: half.left.clone(),
        }),
        MoveOutcome::Tried(Done::Refused(_)) | MoveOutcome::CutOff(None) => Ok(Vec::new()),
    }
}

fn setting(it: &SettingShown) -> Setting {
    let source = wording::source(&it.source);
    Setting { key: it.key.clone(), value: it.value.clone(), source }
}
