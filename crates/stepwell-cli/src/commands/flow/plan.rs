use std::path::PathBuf;

use clap::ValueEnum;
use stepwell_flow::plan::Plan;
use stepwell_terminal::text::visible;

use super::spec;
use crate::app::App;
use crate::failure::{Exit, Result};

/// Shows what a spec would do, as a table or a picture.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The spec: a YAML or JSON file.
    #[arg(value_name = "SPEC")]
    file: PathBuf,
    /// The form of the plan.
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
}

/// A form of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Lines for people.
    Text,
    /// A document with tables and a picture.
    Markdown,
    /// One object, as --json does.
    Json,
    /// A picture for Mermaid.
    Mermaid,
    /// A picture for Graphviz.
    Dot,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let reading = spec::load(&args.file)?;
    spec::warn(&args.file, &reading);
    let plan = Plan::of(&reading.spec);
    let text = match args.format {
        _ if app.out.is_json() => return json(&plan, app),
        Form::Json => return json(&plan, app),
        Form::Text => plan.text(),
        Form::Markdown => plan.markdown(),
        Form::Mermaid => plan.mermaid(),
        Form::Dot => plan.dot(),
    };
    app.out.line(visible(&text).trim_end())?;
    Ok(Exit::Done)
}

fn json(plan: &Plan, app: &mut App) -> Result<Exit> {
    app.out.object(&stepwell_wire::Plan::from(plan))?;
    Ok(Exit::Done)
}
