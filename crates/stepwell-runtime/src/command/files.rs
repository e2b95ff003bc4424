//! A session's files, and the session as a file.

use stepwell::{Seq, SessionId, Stepwell};
use stepwell_formats::{Destination, Wishes, write_to};
use stepwell_wire::{FileDiff, ModelView};
use stepwell_workspace::{Estimates, doctor};

use super::asked::{Export, Folder};
use super::reply::{Exported, FilesReply};
use crate::error::{Error, ErrorKind, Result};
use crate::inspect::{self, Viewed};
use crate::runtime::Runtime;

pub(super) fn diff(
    well: &Stepwell,
    id: &SessionId,
    from: Option<String>,
    to: Option<String>,
) -> Result<Vec<FileDiff>> {
    let at = |text: Option<String>, usual: Seq| match text {
        Some(text) => well.point(id, &text),
        None => Ok(usual),
    };
    inspect::patches(well, id, at(from, Seq::ZERO)?, at(to, Seq::MAX)?)
}

pub(super) fn list(well: &Stepwell, id: &SessionId, path: Option<&str>) -> Result<FilesReply> {
    let path = path.map(|path| path.trim_start_matches("./"));
    let versions = inspect::versions(well, id, path)?;
    match path.filter(|_| versions.is_empty()) {
        Some(path) => Err(inspect::not_changed(id, path)),
        None => Ok(FilesReply { info: well.info(id)?, versions }),
    }
}

impl Runtime {
    /// What the model would be sent.
    pub(super) fn context_of(&self, well: &Stepwell, id: &SessionId) -> Result<ModelView> {
        well.refuse_altered(id)?;
        inspect::model_view(self, well, id, &Viewed::default())
    }

    pub(super) fn export(
        &self,
        well: &Stepwell,
        id: &SessionId,
        export: Export,
    ) -> Result<Exported> {
        let Export { format, path, folder, existing, length } = export;
        well.refuse_altered(id)?;
        let Some(writer) = format.writer() else {
            let why = format!("{format} is read, and not written");
            let formats = stepwell::Remedy::List(stepwell::error::Listing::Formats);
            return Err(Error::refused(ErrorKind::Usage, why).helped_by(formats));
        };
        let path = match folder {
            Folder::Process => path,
            Folder::Workspace => self.workspace().place.root.join(path),
        };
        let head = well.info(id)?.head;
        let estimate = Estimates::new(self.workspace()).of(&head, &head.spent);
        let wishes = Wishes { estimate, length, ..Wishes::default() };
        let place = Destination { wishes, ..Destination::new(&path, existing) };
        let written =
            write_to(&place, writer, well, id).map_err(|error| Error::Workspace(error.into()))?;
        for (id, _) in &written.damaged {
            doctor::note_damage(self.workspace(), id);
        }
        Ok(Exported { path, format, written })
    }
}
