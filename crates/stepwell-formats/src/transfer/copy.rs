//! Copying sessions from one store to another, and showing that they arrived.

use std::io::BufReader;

use stepwell::store::Damage;
use stepwell::{SessionId, Stepwell};

use crate::archive::{self, Form, Imported};
use crate::{Error, Exported, Result};

/// What a copy did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// What was read.
    pub exported: Exported,
    /// What became of it.
    pub imported: Imported,
}

impl Copied {
    /// Every session that is now in both stores.
    pub fn sessions(&self) -> impl Iterator<Item = &SessionId> {
        let Imported { made, completed, already_there, .. } = &self.imported;
        made.iter().chain(completed).chain(already_there)
    }
}

/// Copies a session with the sessions of its subagents, as an export and an import at
/// once, and then reads it back: the copy's chain is re-hashed, and every event is laid
/// beside the original. Doing it again copies what came meanwhile.
pub fn copy(from: &Stepwell, to: &Stepwell, id: &SessionId) -> Result<Copied> {
    let (reader, mut writer) = std::io::pipe().map_err(Error::Write)?;
    let (exported, imported) = std::thread::scope(|scope| {
        let export = scope.spawn(move || archive::export(from, id, Form::Lines, &mut writer));
        let imported = archive::import(to, &mut BufReader::new(reader));
        (export.join(), imported)
    });
    let exported = match (exported, &imported) {
        // What the import refuses also ends the export.
        (Ok(Err(Error::Write(_))), Err(_)) => Ok(Exported::default()),
        (Ok(exported), _) => exported,
        (Err(panic), _) => std::panic::resume_unwind(panic),
    }?;
    let copied = Copied { exported, imported: imported? };
    for id in copied.sessions() {
        let verdict = to.store().maintain().verify(id)?;
        if !verdict.is_sound() {
            let what = "the copy does not verify".to_owned();
            let damage = verdict.damage.unwrap_or(Damage { seq: stepwell::Seq::ZERO, what });
            return Err(damage.into_error(id).into());
        }
        // The original of one that was cut short cannot be read to its end.
        if !copied.imported.cut_short.contains(id) {
            archive::compare(from, to, id)?;
        }
    }
    Ok(copied)
}
