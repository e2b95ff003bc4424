use stepwell::model::Edited;
use stepwell::sqlite::Access;
use stepwell::{SessionId, Stepwell};
use stepwell_terminal::text::visible;
use stepwell_wire::Tags;
use stepwell_workspace::housekeeping::tidy;

use crate::app::App;
use crate::failure::{Exit, Result};

/// Shows a session's tags, or adds some.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The tags.
    #[arg(value_delimiter = ',')]
    tags: Vec<String>,
}

/// Removes tags from a session.
#[derive(Debug, clap::Args)]
pub(crate) struct UntagArgs {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// The tags.
    #[arg(required = true, value_delimiter = ',')]
    tags: Vec<String>,
}

pub(crate) fn tag(args: &Args, app: &mut App) -> Result<Exit> {
    if args.tags.is_empty() {
        let (well, id) = app.workspace.open_session(&args.session, Access::Read)?;
        return told(&well, &id, app).map(|()| Exit::Done);
    }
    let tag = args.tags.iter().cloned().collect();
    edit(&args.session, Edited { tag, ..Edited::default() }, app)
}

pub(crate) fn untag(args: &UntagArgs, app: &mut App) -> Result<Exit> {
    let untag = args.tags.iter().cloned().collect();
    edit(&args.session, Edited { untag, ..Edited::default() }, app)
}

fn edit(session: &str, edited: Edited, app: &mut App) -> Result<Exit> {
    let (well, id) = app.workspace.open_session(session, Access::Write)?;
    well.edit(&id, edited)?;
    told(&well, &id, app)?;
    tidy(&app.workspace, &well);
    Ok(Exit::Done)
}

fn told(well: &Stepwell, id: &SessionId, app: &mut App) -> Result<()> {
    let tags = well.info(id)?.head.tags;
    let listed: Vec<_> = tags.iter().map(|tag| visible(tag)).collect();
    let line = match listed.is_empty() {
        true => format!("{id} has no tags"),
        false => format!("{id} is tagged {}", listed.join(", ")),
    };
    app.out.answer(&Tags { id: id.clone(), tags }, line)
}
