//! What was learned of how providers count tokens, so that the next run estimates better.
//!
//! One small file for each model, replaced as a whole: two runs at once leave the factor of
//! one of them, never half of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stepwell::model::Digest;

use crate::atomic_file::replace_private_file;
use crate::host::Host;

/// The user's known factors.
#[derive(Clone, Debug)]
pub struct Calibrations {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Learned {
    model: String,
    factor: f64,
}

/// A factor that moved by less is not worth a write.
const WORTH: f64 = 0.005;

impl Calibrations {
    /// Those in the state folder of a host, if it has one.
    #[must_use]
    pub fn of(host: &Host) -> Option<Self> {
        host.state.as_deref().map(Self::below)
    }

    /// Those in the user's state folder.
    fn below(state: &Path) -> Self {
        Self { folder: state.join("tokens") }
    }

    fn entry(&self, model: &str) -> PathBuf {
        let digest = Digest::of(model.as_bytes()).to_string();
        self.folder.join(&digest[..16])
    }

    /// The factor of a model, `provider/name`; absent, nothing was learned. A file that
    /// cannot be read is as good as none: it is only an estimate.
    #[must_use]
    pub fn get(&self, model: &str) -> Option<f64> {
        let text = fs::read_to_string(self.entry(model)).ok()?;
        let learned: Learned = serde_json::from_str(&text).ok()?;
        (learned.model == model && learned.factor.is_finite()).then_some(learned.factor)
    }

    /// Remembers the factor of a model.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put(&self, model: &str, factor: f64) -> io::Result<()> {
        if self.get(model).is_some_and(|known| (known - factor).abs() < WORTH * known) {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        let learned = Learned { model: model.to_owned(), factor };
        let text = format!("{}\n", serde_json::to_string(&learned)?);
        replace_private_file(&self.entry(model), text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_remembered_for_its_model() {
        let top = tempfile::tempdir().unwrap();
        let known = Calibrations::below(top.path());
        assert_eq!(known.get("openai/gpt-4o"), None);
        known.put("openai/gpt-4o", 1.25).unwrap();
        known.put("anthropic/claude", 0.8).unwrap();
        assert_eq!(known.get("openai/gpt-4o"), Some(1.25));
        known.put("openai/gpt-4o", 1.251).unwrap();
        assert_eq!(known.get("openai/gpt-4o"), Some(1.25));
        known.put("openai/gpt-4o", 1.5).unwrap();
        assert_eq!(known.get("openai/gpt-4o"), Some(1.5));
        fs::write(known.entry("openai/gpt-4o"), "{").unwrap();
        assert_eq!(known.get("openai/gpt-4o"), None);
        known.put("openai/gpt-4o", 2.0).unwrap();
        assert_eq!(known.get("openai/gpt-4o"), Some(2.0));
        assert_eq!(fs::read_dir(top.path().join("tokens")).unwrap().count(), 2);
    }
}
