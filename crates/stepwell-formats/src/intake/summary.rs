//! What an import of several files and folders did, in numbers.

use std::fmt;

use stepwell::ErrorKind;

use super::{Became, Report};
use crate::Error;

/// What an import did, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Sessions that are new.
    pub imported: usize,
    /// Sessions that got what is new.
    pub updated: usize,
    /// Sessions that are as they were.
    pub unchanged: usize,
    /// What could not be read to its end.
    pub damaged: usize,
    /// What is no session of a known format, or not there at all.
    pub unrecognised: usize,
    /// Those that somebody holds, or that are in the trash.
    pub skipped: usize,
}

impl ImportSummary {
    /// Counts what became of a file or folder.
    pub fn count(&mut self, report: &Report) {
        for taken in &report.sessions {
            match taken.became {
                Became::Imported => self.imported += 1,
                Became::Updated => self.updated += 1,
                Became::Unchanged => self.unchanged += 1,
            }
        }
        match report.fault {
            Some(_) if report.is_skipped() => self.skipped += 1,
            Some(_) => self.damaged += 1,
            None => {}
        }
    }

    /// How many sessions could be read.
    #[must_use]
    pub const fn read(&self) -> usize {
        self.imported + self.updated + self.unchanged
    }
}

impl fmt::Display for ImportSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { imported, updated, unchanged, damaged, unrecognised, skipped } = self;
        write!(
            f,
            "{imported} imported, {updated} updated, {unchanged} unchanged, {damaged} damaged"
        )?;
        if *unrecognised > 0 {
            write!(f, ", {unrecognised} not recognised")?;
        }
        if *skipped > 0 {
            write!(f, ", {skipped} skipped")?;
        }
        Ok(())
    }
}

impl Report {
    /// Was it left as it is because somebody holds it, or because it lies in the trash? It is as
    /// sound as it was.
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        self.fault.as_ref().is_some_and(|error| {
            let trashed = matches!(error, Error::Store(stepwell::Error::Trashed(_)));
            trashed || error.kind() == ErrorKind::Busy
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_the_trash_is_skipped_and_what_is_broken_is_damaged() {
        let id = "20260223-143022-a1b2c3".parse().expect("an id");
        let of = |fault| Report { fault: Some(fault), ..Report::default() };
        let mut summary = ImportSummary::default();
        summary.count(&of(Error::Store(stepwell::Error::Trashed(id))));
        let why = "no JSON".to_owned();
        summary.count(&of(Error::Foreign { path: "a.json".into(), why }));
        assert_eq!(summary.to_string(), "0 imported, 0 updated, 0 unchanged, 1 damaged, 1 skipped");
    }
}
