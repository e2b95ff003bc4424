//! The accepted tokens, and their files. A change of a file takes effect at once: a removed token
//! is no longer accepted.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::stamp::Stamp;
use super::{NamedToken, Role, Token};

/// The files of tokens.
#[derive(Clone, Debug)]
pub struct TokenFiles {
    /// The user's name.
    pub name: String,
    /// The file with the user's own token.
    pub own: PathBuf,
    /// A file of others' tokens: `NAME viewer|operator TOKEN` on each line.
    pub others: Option<PathBuf>,
}

impl TokenFiles {
    fn read(&self) -> io::Result<Vec<NamedToken>> {
        let at = |path: &PathBuf, error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        };
        let token = Token::kept_in(&self.own).map_err(|error| at(&self.own, error))?;
        let own =
            NamedToken { name: self.name.clone(), role: Role::Operator, is_user: true, token };
        let mut all = vec![own];
        if let Some(path) = &self.others {
            all.extend(NamedToken::all_in(path).map_err(|error| at(path, error))?);
            refuse_twice(&all).map_err(|error| at(path, error))?;
        }
        Ok(all)
    }

    fn stamps(&self) -> [Option<Stamp>; 2] {
        [Stamp::of(&self.own), self.others.as_deref().and_then(Stamp::of)]
    }
}

/// The accepted tokens. Names and tokens are unique, so that a caller's role does not depend on the
/// order.
#[derive(Debug)]
pub struct Tokens {
    files: Option<TokenFiles>,
    read: Mutex<Read>,
}

#[derive(Debug)]
struct Read {
    tokens: Arc<[NamedToken]>,
    stamps: [Option<Stamp>; 2],
}

impl Tokens {
    /// A fixed set.
    ///
    /// # Errors
    /// If two have the same name or token.
    pub fn new(tokens: Vec<NamedToken>) -> io::Result<Self> {
        refuse_twice(&tokens)?;
        Ok(Self {
            files: None,
            read: Mutex::new(Read { tokens: tokens.into(), stamps: [None; 2] }),
        })
    }

    /// The tokens in files. A missing token of the user is created.
    ///
    /// # Errors
    /// If a file cannot be read, or two tokens have the same name or are equal.
    pub fn kept_in(files: TokenFiles) -> io::Result<Self> {
        let stamps = files.stamps();
        let tokens = files.read()?.into();
        Ok(Self { files: Some(files), read: Mutex::new(Read { tokens, stamps }) })
    }

    /// The current tokens.
    pub(crate) fn now(&self) -> Arc<[NamedToken]> {
        let mut read = self.read.lock();
        if let Some(files) = &self.files {
            let stamps = files.stamps();
            if stamps != read.stamps {
                match files.read() {
                    Ok(tokens) => *read = Read { tokens: tokens.into(), stamps },
                    // A half-written file changes nothing.
                    Err(error) => tracing::warn!(%error, "the tokens stay unchanged"),
                }
            }
        }
        Arc::clone(&read.tokens)
    }

    /// The token of the user who runs the server.
    pub(crate) fn users_own(&self) -> Option<NamedToken> {
        self.now().iter().find(|token| token.is_user).cloned()
    }
}

fn refuse_twice(tokens: &[NamedToken]) -> io::Result<()> {
    let (mut names, mut secrets) = (HashSet::new(), HashSet::new());
    for NamedToken { name, token, .. } in tokens {
        let twice = match (names.insert(name), secrets.insert(token.bytes())) {
            (false, _) => format!("two tokens have the name {name}"),
            (_, false) => format!("{name} has the same token as somebody else"),
            (true, true) => continue,
        };
        return Err(io::Error::new(io::ErrorKind::InvalidData, twice));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::*;

    fn named(name: &str, role: Role, token: &Token) -> NamedToken {
        NamedToken { name: name.to_owned(), role, is_user: false, token: token.clone() }
    }

    fn write(path: &Path, lines: &[(&str, &str, &Token)]) {
        let line = |(name, role, token): &(&str, &str, &Token)| {
            format!("{name} {role} {}\n", token.reveal())
        };
        fs::write(path, lines.iter().map(line).collect::<String>()).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    #[test]
    fn no_name_and_no_token_is_there_twice() {
        let [one, other] = [(); 2].map(|()| Token::generate().unwrap());
        let refused = |tokens| Tokens::new(tokens).unwrap_err().to_string();
        let same_name =
            refused(vec![named("ann", Role::Operator, &one), named("ann", Role::Viewer, &other)]);
        assert!(same_name.contains("two tokens have the name ann"), "{same_name}");
        let same_token =
            refused(vec![named("ann", Role::Operator, &one), named("bob", Role::Viewer, &one)]);
        assert!(same_token.contains("bob"), "{same_token}");
        let folder = tempfile::tempdir().unwrap();
        let (own, others) = (folder.path().join("own"), folder.path().join("others"));
        write(&others, &[("me", "viewer", &one)]);
        let files = TokenFiles { name: "me".to_owned(), own, others: Some(others) };
        let users_name = Tokens::kept_in(files).unwrap_err().to_string();
        assert!(users_name.contains("two tokens have the name me"), "{users_name}");
    }

    #[test]
    fn a_file_that_changes_counts_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (own, others) = (folder.path().join("own"), folder.path().join("others"));
        let [ann, bob] = [(); 2].map(|()| Token::generate().unwrap());
        write(&others, &[("ann", "operator", &ann), ("bob", "operator", &bob)]);
        let (name, paths) = ("me".to_owned(), (own.clone(), Some(others.clone())));
        let tokens = Tokens::kept_in(TokenFiles { name, own: paths.0, others: paths.1 }).unwrap();
        let has = |token: &Token| tokens.now().iter().any(|it| it.token.matches(token));
        let first = tokens.users_own().unwrap().token;
        assert!(has(&ann) && has(&bob) && has(&first));
        write(&others, &[("ann", "viewer", &ann)]);
        assert!(has(&ann) && !has(&bob));
        assert_eq!(tokens.now()[1].role, Role::Viewer);
        let second = Token::renew(&own).unwrap();
        assert!(has(&second) && !has(&first));
        fs::write(&others, "ann operat").unwrap();
        assert!(has(&ann) && has(&second), "a line that is wrong changes nothing");
    }
}
