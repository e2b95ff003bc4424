use std::path::{Path, PathBuf};

use stepwell_agent::price::list::List;
use stepwell_agent::price::{Long, Price};
use stepwell_terminal::note;
use stepwell_terminal::table::{Column, Table, left, right};
use stepwell_terminal::text::{count, grouped, visible};
use stepwell_wire::PricesTaken;
use stepwell_workspace::{NoPriceList, PriceListFile, prices};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::reach::Reach;

/// Shows what models cost and how much fits them, or takes a newer list.
///
/// Dollars per million tokens: sent, read from the provider's cache, written to it, received. The
/// list ships with Stepwell; prices in your configuration go first. Without a name, the models of
/// the vendors that Stepwell knows by itself are shown, and those of your configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A provider, or a part of a model's name.
    name: Option<String>,
    /// Takes a newer list from a file that scripts/prices.py made.
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    update: Option<PathBuf>,
}

const COLUMNS: &[Column] = &[
    left("MODEL"),
    right("INPUT"),
    right("CACHED"),
    right("WRITTEN"),
    right("OUTPUT"),
    right("CONTEXT"),
    left("FROM"),
];

impl Args {
    pub(super) fn reach(&self) -> Reach {
        Reach::widens_if(self.update.is_some(), Reach::Reads)
    }
}

pub(super) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if let Some(file) = &args.update {
        let taken = install(file, app)?;
        let (made, providers) = (taken.made(), taken.providers().count());
        let line = format!("Took the prices of {made}, of {}", count(providers, "provider"));
        app.out.answer(&PricesTaken { made: made.to_owned(), providers }, line)?;
        if list(app).made() > made {
            note("hint: the list that ships with this Stepwell is newer, and is used");
        }
        return Ok(Exit::Done);
    }
    let all = prices::with_list(&app.workspace, list(app))?;
    let (shown, others) = prices::shown(&app.workspace, &all, args.name.as_deref());
    print(&shown, app)?;
    if !app.out.is_json() {
        let list = list(app);
        let source =
            |it: &stepwell_agent::price::list::Source| format!("{} {}", it.name, it.version);
        let sources: Vec<String> = list.sources().iter().map(source).collect();
        note(format_args!("The list is of {}, from {}.", list.made(), sources.join(" and ")));
        if others > 0 && args.name.is_none() {
            note(format_args!(
                "hint: {} more: stepwell models prices NAME, a provider or a part of a name",
                count(others, "model")
            ));
        }
    }
    Ok(Exit::Done)
}

/// The newest list that there is.
fn list(app: &App) -> List {
    let (list, why) = prices::newest_list(&app.workspace);
    if let Some(why) = why {
        note(format_args!("warning: {why}; the prices that ship are used"));
    }
    list
}

/// Takes a list from a file, for this and all later commands of the user.
fn install(from: &Path, app: &App) -> Result<List> {
    let file = PriceListFile::of(&app.workspace.host).ok_or_else(|| {
        Failure::new(Exit::Failed, "there is no place to keep prices in")
            .hint("set HOME or XDG_STATE_HOME")
    })?;
    file.install(from).map_err(|error| match error {
        NoPriceList::NotOne { .. } => Failure::new(Exit::Absent, error)
            .hint("scripts/prices.py in Stepwell's repository makes one"),
        NoPriceList::File { .. } => Failure::new(Exit::Failed, error),
    })
}

fn print(shown: &[(String, Price)], app: &mut App) -> Result<()> {
    if app.out.is_json() {
        for (model, price) in shown {
            app.out.object(&price.of_model(model))?;
        }
        return Ok(());
    }
    if shown.is_empty() {
        return app.out.line("No such model has a known price.");
    }
    let mut table = Table::new(COLUMNS);
    for (model, price) in shown {
        let dollars = |part: Option<stepwell::model::Money>| part.map(|it| it.to_string());
        let long = |part: fn(&Long) -> stepwell::model::Money| {
            let tier = |long| format!("; {} over {}", part(long), grouped(long.over));
            price.long.iter().map(tier).collect::<String>()
        };
        table.push(vec![
            visible(model).into(),
            format!("{}{}", price.input, long(|it| it.input)).into(),
            dollars(price.cached).unwrap_or_default().into(),
            dollars(price.cache_written).unwrap_or_default().into(),
            format!("{}{}", price.output, long(|it| it.output)).into(),
            price.context.map(grouped).unwrap_or_default().into(),
            price.as_of.clone().unwrap_or_else(|| "yours".to_owned()).into(),
        ]);
    }
    app.print(&table)
}
