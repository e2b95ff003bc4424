//! Sessions that their own program keeps in this store: a file that tells of one is the same session,
//! and brings only what is not there yet.

use stepwell::SessionId;
use stepwell::store::query::{Filter, InScope, Query};
use stepwell::store::{Append, Write};

use super::name::wanted;
use super::{Became, ImportedSession, Intake, Mode};
use crate::Result;
use crate::read::neutral::{KeptLine, Opening};
use crate::read::reader::{Keeper, Reader};

/// How many lines are written at a time.
const BATCH: usize = 256;

/// Gives the lines of a file, one after the other.
pub(crate) type Lines<'a> = dyn FnMut() -> Result<Option<KeptLine>> + 'a;

impl Intake<'_> {
    /// The session here that the program of an opening's session keeps itself.
    pub(super) fn kept_by_its_program(&mut self, opening: &Opening) -> Result<Option<SessionId>> {
        let Some(keeper) = self.format.reader().and_then(Reader::keeper) else { return Ok(None) };
        let Some(parent) = &opening.parent else {
            let main = self.kept_main(keeper, &opening.id)?;
            return Ok(main.map(|(id, _)| id));
        };
        let Some((main, scope)) = self.kept_main(keeper, parent)? else { return Ok(None) };
        let agent = opening.id.strip_prefix(&format!("{parent}.")).unwrap_or(&opening.id);
        let (scope, name) = (format!("{scope}\u{1f}{parent}"), (keeper.subagent)(agent));
        let filter = Filter {
            system: Some(keeper.system.to_owned()),
            scope: Some(InScope::Is(scope)),
            ..Filter::default()
        };
        let found = self.well.list(&Query { filter, ..Query::default() })?.sessions;
        let is_it =
            |head: &stepwell::log::Head| head.source.as_ref().is_some_and(|it| it.id == name);
        self.names.insert(parent.clone(), main);
        Ok(found.into_iter().map(|it| it.head).find(is_it).map(|head| head.id))
    }

    /// A session that the program keeps, and its scope.
    fn kept_main(&self, keeper: Keeper, name: &str) -> Result<Option<(SessionId, String)>> {
        let head = match self.well.store().info(&wanted(name)) {
            Ok(info) => info.head,
            Err(stepwell::Error::NoSession(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let source = head.source.as_ref();
        let is_kept = source.is_some_and(|it| it.system == keeper.system && it.id == name);
        Ok(is_kept.then(|| (head.id, head.scope.unwrap_or_default())))
    }

    /// Adds the lines that are not there.
    pub(super) fn add_lines(&mut self, id: &SessionId, lines: &mut Lines<'_>) -> Result<()> {
        let (mut events, mut grown) = (Vec::new(), false);
        while let Some(line) = lines()? {
            if self.well.store().event(id, &line.id)?.is_some() {
                continue;
            }
            grown = true;
            events.extend(line.events);
            if events.len() >= BATCH {
                self.add(id, std::mem::take(&mut events))?;
            }
        }
        self.add(id, events)?;
        let (became, instead_of, continues) = (Became::Updated, None, None);
        self.note(ImportedSession { id: id.clone(), became, instead_of, continues }, grown);
        Ok(())
    }

    fn add(&self, id: &SessionId, events: Vec<stepwell::NewEvent>) -> Result<()> {
        if self.mode == Mode::Look || events.is_empty() {
            return Ok(());
        }
        let append =
            Append { session: id.clone(), epoch: None, expected: None, events: events.into() };
        self.well.store().write(Write::Append(append))?;
        Ok(())
    }
}
