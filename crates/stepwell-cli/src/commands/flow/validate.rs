use std::path::PathBuf;

use stepwell_flow::spec::{Problem, Spec, SpecError};
use stepwell_terminal::text::count;
use stepwell_wire::{FlowCheck, FlowProblem};

use super::spec;
use crate::app::App;
use crate::failure::{Exit, Result};

/// Checks a spec without running it.
///
/// Agents, tasks, edges, tools, variables and what templates ask for are looked up. What is wrong
/// is told with line and column; what has no effect is warned of.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The spec: a YAML or JSON file.
    #[arg(value_name = "SPEC")]
    file: PathBuf,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let shown = args.file.display().to_string();
    let read = Spec::load(&args.file, &shown).and_then(|(_, reading)| {
        let absent = |(server, _): &(String, Problem)| !is_configured(server, app);
        let problems: Vec<_> =
            reading.servers.iter().filter(|it| absent(it)).map(|(_, it)| it.clone()).collect();
        match problems.is_empty() {
            true => Ok(reading),
            false => Err(SpecError::Invalid { file: shown.clone(), problems }),
        }
    });
    let reading = match read {
        Ok(reading) => reading,
        Err(SpecError::Invalid { problems, .. }) if app.out.is_json() => {
            let problems = problems.iter().map(FlowProblem::from).collect();
            let (name, pattern, warnings) = (None, None, Vec::new());
            let answer = FlowCheck { file: shown, valid: false, name, pattern, problems, warnings };
            app.out.object(&answer)?;
            return Ok(Exit::Absent);
        }
        Err(error) => return Err(error.into()),
    };
    let spec = &reading.spec;
    if app.out.is_json() {
        app.out.object(&FlowCheck {
            file: shown,
            valid: true,
            name: Some(spec.name.clone()),
            pattern: Some(spec.pattern.name().to_owned()),
            problems: Vec::new(),
            warnings: reading.warnings.iter().map(FlowProblem::from).collect(),
        })?;
        return Ok(Exit::Done);
    }
    spec::warn(&args.file, &reading);
    let agents = count(spec.agents.len(), "agent");
    app.out.line(format_args!(
        "{shown} is valid: {} ({}, {agents})",
        spec.name,
        spec.pattern.name()
    ))?;
    Ok(Exit::Done)
}

/// Is an MCP server of this name configured?
fn is_configured(server: &str, app: &App) -> bool {
    app.workspace.config.mcp.keys().any(|known| known.as_str() == server)
}
