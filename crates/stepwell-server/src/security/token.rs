//! Tokens: 256 random bits that grant access.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use stepwell_workspace::atomic_file::replace_private_file;

use super::{Caller, Role};

const BYTES: usize = 32;

/// 256 random bits. They are never printed by accident.
#[derive(Clone)]
pub struct Token([u8; BYTES]);

impl Token {
    /// A new token.
    ///
    /// # Errors
    /// If the machine provides no random bits.
    #[expect(
        clippy::disallowed_methods,
        reason = "nobody may choose what a token is, no test either"
    )]
    pub fn generate() -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(bytes))
    }

    /// Parses a token.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    /// The text of the token, for its owner.
    #[must_use]
    pub fn reveal(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    pub(crate) const fn bytes(&self) -> &[u8; BYTES] {
        &self.0
    }

    /// Are they equal? Takes the same time for all tokens.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        let differences = self.0.iter().zip(other.0).fold(0, |found, (a, b)| found | (a ^ b));
        std::hint::black_box(differences) == 0
    }

    /// The token in a file. If the file does not exist, it is created, readable only by its owner.
    ///
    /// # Errors
    /// If the file cannot be read or created, or others can read it.
    pub fn kept_in(path: &Path) -> io::Result<Self> {
        match OpenOptions::new().read(true).open(path) {
            Ok(mut file) => {
                refuse_shared(&file)?;
                let mut text = String::new();
                file.read_to_string(&mut text)?;
                let wrong =
                    || io::Error::new(io::ErrorKind::InvalidData, "the file contains no token");
                Self::parse(&text).ok_or_else(wrong)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::renew(path),
            Err(error) => Err(error),
        }
    }

    /// Writes a new token into a file. The old one is no longer accepted.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn renew(path: &Path) -> io::Result<Self> {
        let token = Self::generate()?;
        // Written atomically: a server reads either the old one or the new one.
        replace_private_file(path, format!("{}\n", token.reveal()).as_bytes())?;
        Ok(token)
    }
}

fn refuse_shared(file: &std::fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    match file.metadata()?.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "others can read the file; chmod 600 makes it private",
        )),
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A token with its owner and role.
#[derive(Clone, Debug)]
pub struct NamedToken {
    /// The name in the log.
    pub name: String,
    /// The owner's role.
    pub role: Role,
    /// Does it belong to the user who runs the server?
    pub is_user: bool,
    /// The token.
    pub token: Token,
}

impl NamedToken {
    pub(crate) fn caller(&self) -> Caller {
        Caller { name: self.name.clone(), role: self.role, is_user: self.is_user }
    }

    /// The tokens in a file, one a line: `NAME viewer|operator TOKEN`.
    ///
    /// # Errors
    /// If the file cannot be read, others can read it, or a line is invalid.
    pub fn all_in(path: &Path) -> io::Result<Vec<Self>> {
        let mut file = OpenOptions::new().read(true).open(path)?;
        refuse_shared(&file)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let read = |(n, line): (usize, &str)| {
            let wrong = || io::Error::new(io::ErrorKind::InvalidData, format!("line {}", n + 1));
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, role, token] = words[..] else { return Err(wrong()) };
            let role = match role {
                "viewer" => Role::Viewer,
                "operator" => Role::Operator,
                _ => return Err(wrong()),
            };
            let token = Token::parse(token).ok_or_else(wrong)?;
            Ok(Self { name: name.to_owned(), role, is_user: false, token })
        };
        lines.map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written_and_matches_only_itself() {
        let (one, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert!(Token::parse(&one.reveal()).unwrap().matches(&one));
        assert!(!one.matches(&other));
        assert!(Token::parse("short").is_none());
        assert_eq!(format!("{one:?}"), "Token(…)");
    }

    #[test]
    fn a_file_keeps_a_token_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let made = Token::kept_in(&path).unwrap();
        assert!(Token::kept_in(&path).unwrap().matches(&made));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!Token::renew(&path).unwrap().matches(&made));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let refused = Token::kept_in(&path).unwrap_err().to_string();
        assert!(refused.contains("chmod 600"), "{refused}");
    }
}
