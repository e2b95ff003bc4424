use stepwell_terminal::text::visible;
use stepwell_terminal::{Style, note};
use stepwell_wire::CheckFinding;
use stepwell_workspace::doctor::{Finding, Repair, examine};

use crate::app::App;
use crate::failure::{Exit, Result};
use crate::reach::Reach;

/// Checks the store and says what it would repair; --repair does it.
///
/// Checks the file, its permissions, sessions that are known to be damaged, runs whose process
/// died, and the list of your stores. `verify` re-reads every event. Exits with 0 only if nothing
/// was found, or all of it was repaired.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Repairs what can be.
    #[arg(long)]
    repair: bool,
}

impl Args {
    pub(super) fn reach(&self) -> Reach {
        if self.repair { Reach::Erases } else { Reach::Reads }
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let repair = if args.repair { Repair::Yes } else { Repair::No };
    let findings = examine(&app.workspace, app.config_fault.as_deref(), repair)?;
    if !app.workspace.place.has_store() {
        note("There is no store here; stepwell init makes one.");
    }
    findings.iter().try_for_each(|finding| print(finding, app))?;
    if !args.repair && findings.iter().any(|finding| finding.repair.is_some()) {
        note("hint: stepwell doctor --repair does what is said above");
    }
    let open: Vec<&Finding> = findings.iter().filter(|finding| finding.is_open()).collect();
    Ok(match open.iter().any(|finding| finding.check.is_about_data()) {
        true => Exit::Damaged,
        false if open.is_empty() => Exit::Done,
        false => Exit::Failed,
    })
}

fn print(finding: &Finding, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        return app.out.object(&CheckFinding::from(finding));
    }
    let (style, word) = match (finding.problems.is_empty(), finding.repaired) {
        (true, _) => (Style::Green, "ok"),
        (false, true) => (Style::Green, "repaired"),
        (false, false) if finding.check.is_harmless() => (Style::Yellow, "wrong"),
        (false, false) => (Style::Red, "wrong"),
    };
    let check = finding.check.as_str();
    app.out.line(format_args!("{:<12} {}", check, app.out.paint.paint(style, word)))?;
    for problem in &finding.problems {
        app.out.line(format_args!("  {}", visible(problem)))?;
    }
    match finding.repair {
        Some(repair) if !finding.repaired => app.out.line(format_args!("  would {repair}")),
        _ => Ok(()),
    }
}
