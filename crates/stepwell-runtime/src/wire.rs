//! What programs get to read of a run's end, and of an import.

use stepwell_formats::{Became, ImportedSession, Mode};
use stepwell_wire::{Costs, ImportedAgent};
use stepwell_workspace::imported;

use crate::command::ImportReport;
use crate::command::import::ImportProblem;
use crate::report::{FlowReport, RunReport};

impl RunReport {
    fn costs(&self) -> Costs {
        let by_source = self.by_source.iter().map(|(name, spent)| (name.clone(), *spent));
        Costs {
            estimate: self.estimate.map(|it| it.cost.into()),
            ..Costs::new(&self.spent, by_source)
        }
    }

    /// What programs get to read of how a flow ended.
    #[must_use]
    pub fn flow_answer(&self, flow: &FlowReport) -> stepwell_wire::FlowReport {
        let by_agent = flow.by_agent.iter().map(|(name, usage)| (name.clone(), usage.into()));
        stepwell_wire::FlowReport {
            session_id: self.saved.then(|| self.session.clone()),
            saved: self.saved,
            flow: flow.name.clone(),
            pattern: flow.pattern.clone(),
            status: self.status,
            stop_reason: self.reason,
            output: flow.output.clone(),
            error: self.error.as_ref().map(|error| error.message.clone()),
            gates: self.waiting.iter().map(Into::into).collect(),
            artifacts: flow.artifacts.clone(),
            steps: self.steps,
            duration_seconds: self.took.as_secs_f64(),
            model: self.model.clone(),
            costs: self.costs(),
            tokens_by_agent: by_agent.collect(),
            resumed_from: self.resumed_from.map(stepwell::Seq::get),
        }
    }
}

impl From<&RunReport> for stepwell_wire::RunReport {
    fn from(report: &RunReport) -> Self {
        Self {
            session_id: report.saved.then(|| report.session.clone()),
            saved: report.saved,
            status: report.status,
            stop_reason: report.reason,
            output: report.redacted_output.clone(),
            error: report.error.as_ref().map(|error| error.message.clone()),
            steps: report.steps,
            tools_used: report.tools_used.clone(),
            files_modified: report.files_modified.clone(),
            duration_seconds: report.took.as_secs_f64(),
            model: report.model.clone(),
            costs: report.costs(),
            resumed_from: report.resumed_from.map(stepwell::Seq::get),
        }
    }
}

impl From<&ImportReport> for stepwell_wire::ImportReport {
    fn from(report: &ImportReport) -> Self {
        let summary = &report.summary;
        let problems = report.problems.iter().map(problem);
        let faults = report.places.iter().filter_map(|place| {
            let fault = place.report.fault.as_ref()?;
            Some(format!("{}: {fault}", place.path.display()))
        });
        let agents = report.searched.iter().map(|searched| {
            let became = |wanted| {
                let places = report.places.iter().filter(|it| it.path.starts_with(&searched.path));
                let sessions = places.flat_map(|place| &place.report.sessions);
                sessions.filter(|it| it.became == wanted).count()
            };
            ImportedAgent {
                agent: searched.format.title().to_owned(),
                format: searched.format.as_str().to_owned(),
                folder: searched.path.display().to_string(),
                files: searched.files,
                imported: became(Became::Imported),
                updated: became(Became::Updated),
            }
        });
        let sessions = report.places.iter().flat_map(|place| {
            let changed = |it: &&ImportedSession| it.became != Became::Unchanged;
            let changed = place.report.sessions.iter().filter(changed);
            changed.map(|it| imported(it, &place.path, place.format))
        });
        Self {
            dry_run: report.mode == Mode::Look,
            agents: agents.collect(),
            imported: summary.imported,
            updated: summary.updated,
            unchanged: summary.unchanged,
            damaged: summary.damaged,
            skipped: summary.skipped,
            sessions: sessions.collect(),
            problems: problems.chain(faults).collect(),
        }
    }
}

fn problem(problem: &ImportProblem) -> String {
    match problem {
        ImportProblem::NotFound(path, error) => format!("{}: {error}", path.display()),
        ImportProblem::NotRecognised(path, ..) => {
            format!("{}: no session of a known format", path.display())
        }
        ImportProblem::Damaged(error) | ImportProblem::Unreadable(error) => error.to_string(),
    }
}
