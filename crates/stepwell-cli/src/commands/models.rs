mod prices;

use std::path::{Path, PathBuf};

use stepwell_formats::Input;
use stepwell_runtime::command::Command;
use stepwell_runtime::{KnownModel, check_model_name, known_model};
use stepwell_terminal::note;
use stepwell_terminal::text::{count, visible};
use stepwell_wire::{FavouriteChanged, ModelsAdopted};
use stepwell_workspace::{Liked, RecentModels, RecentModelsFile};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::reach::Reach;

/// Lists the models that you used last, and your favourites.
///
/// They are yours, whatever the workspace. models.max_recent says how many are remembered.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Lists them.
    List,
    /// Makes a model a favourite.
    Add {
        /// The model, as provider/name.
        model: String,
    },
    /// Removes a model from the favourites.
    Remove {
        /// The model.
        model: String,
    },
    /// Shows models' prices and context sizes, or loads a newer list.
    Prices(prices::Args),
    /// Imports the models that M31A remembers.
    Import {
        /// M31A's file, such as `~/.m31a/recent_models.json`.
        file: PathBuf,
    },
}

impl Args {
    /// Budgets are counted in the prices of the list.
    pub(super) fn reach(&self) -> Reach {
        match &self.action {
            None | Some(Action::List) => Reach::Reads,
            Some(Action::Prices(prices)) => prices.reach(),
            Some(Action::Add { .. } | Action::Remove { .. } | Action::Import { .. }) => {
                Reach::Writes
            }
        }
    }
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    if let Some(Action::Prices(args)) = &args.action {
        return prices::run(args, app);
    }
    if let None | Some(Action::List) = &args.action {
        let reply = app.carry_out(Command::Models)?;
        return app.answer(&reply);
    }
    let shelf = RecentModelsFile::of(&app.workspace.host).ok_or_else(|| {
        Failure::new(Exit::Failed, "there is no place to remember models in")
            .hint("set HOME or XDG_STATE_HOME")
    })?;
    match &args.action {
        None | Some(Action::List | Action::Prices(_)) => {}
        Some(Action::Add { model }) => {
            let name = check_model_name(model, &app.runtime())?;
            like(&shelf, &name, Liked::Yes, app)?;
        }
        Some(Action::Remove { model }) if shelf.read()?.likes(model) => {
            like(&shelf, model, Liked::No, app)?;
        }
        Some(Action::Remove { model }) => {
            let name = check_model_name(model, &app.runtime()).unwrap_or_else(|_| model.clone());
            like(&shelf, &name, Liked::No, app)?;
        }
        Some(Action::Import { file }) => adopt(&shelf, file, app)?,
    }
    Ok(Exit::Done)
}

fn adopt(shelf: &RecentModelsFile, file: &Path, app: &mut App) -> Result<()> {
    let text = Input::at(file).and_then(|input| input.text(input.root()))?;
    let theirs: RecentModels = serde_json::from_str(&text).map_err(|error| {
        let message = format!("{} holds no recent models: {error}", file.display());
        Failure::new(Exit::Damaged, message).hint("M31A keeps them in ~/.m31a/recent_models.json")
    })?;
    let runtime = app.runtime();
    // What is wrong with the configuration is said once, and not of each name.
    known_model("", &runtime)?;
    let (theirs, left_out) = theirs.named(|name| match known_model(name, &runtime) {
        Ok(KnownModel::Named(ours)) => Ok(ours),
        Ok(why) => Err(why),
        Err(_) => Err(KnownModel::Unknown),
    });
    for (name, why) in &left_out {
        note(format_args!("{name:?} is left out: {}", no_name(why)));
    }
    let most =
        usize::try_from(app.workspace.config.settings.max_recent.get()).unwrap_or(usize::MAX);
    let adopted = shelf.change(|models| models.adopt(&theirs, most))?;
    let models = count(adopted.recent, "model");
    let line = format!("Took over {models} and {}", count(adopted.favourites, "favourite"));
    let (recent, favourites) = (adopted.recent, adopted.favourites);
    app.out.answer(&ModelsAdopted { recent, favourites }, line)
}

/// Why a model has no name here.
fn no_name(why: &KnownModel) -> String {
    match why {
        KnownModel::OneOf(names) => {
            let add = names.first().map(String::as_str).unwrap_or_default();
            let names = names.join(" or ");
            format!("it may be {names}; stepwell models add {add} takes the one that you mean")
        }
        KnownModel::NotSetUp(providers) => {
            let example = providers.first().map(String::as_str).unwrap_or_default();
            let all = providers.join(" or ");
            format!("it is a model of {all}, which needs [providers.{example}] in your config.toml")
        }
        KnownModel::Named(_) | KnownModel::Unknown => "--model takes no such name".to_owned(),
    }
}

fn like(shelf: &RecentModelsFile, model: &str, liked: Liked, app: &mut App) -> Result<()> {
    let changed = shelf.change(|models| models.like(model, liked))?;
    let name = visible(model);
    let line = match (liked, changed) {
        (Liked::Yes, true) => format!("{name} is a favourite"),
        (Liked::Yes, false) => format!("{name} is a favourite already"),
        (Liked::No, true) => format!("{name} is no favourite any more"),
        (Liked::No, false) => {
            return Err(Failure::new(Exit::Failed, format_args!("{name} is no favourite"))
                .hint("stepwell models lists those that are"));
        }
    };
    let (model, favourite) = (model.to_owned(), liked == Liked::Yes);
    app.out.answer(&FavouriteChanged { model, favourite }, line)
}
