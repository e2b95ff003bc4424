//! What programs get to read of a run's end.

use stepwell_wire::Costs;

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
