//! Names of MCP servers, and of their tools in a form that every provider accepts and that never
//! collides with a built-in tool.

use std::fmt;
use std::str::FromStr;

use stepwell::model::Digest;

/// Separates a server's name from its tool's. No built-in tool's name contains it.
pub const BETWEEN: &str = "__";

/// The longest tool name that every provider accepts.
const LONGEST: usize = 64;

/// The longest server name: it leaves room for the tools' names.
const LONGEST_SERVER: usize = 32;

/// How many digits of a digest make a shortened name unique.
const DIGITS: usize = 8;

/// A server's name: letters, digits, `-` and `_`, such that every tool name splits into server and
/// tool in only one way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(String);

impl FromStr for ServerName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = text.chars().all(is_plain);
        if !plain || !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Err("a server's name consists of letters, digits, - and _, and begins with a \
                letter"
                .to_owned());
        }
        if text.contains(BETWEEN) || text.ends_with('_') {
            return Err("a server's name has no two _ in a row, and none at its end".to_owned());
        }
        if text.len() > LONGEST_SERVER {
            return Err(format!("a server's name has at most {LONGEST_SERVER} characters"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ServerName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of one of its tools for the model. A name that providers would reject is rewritten,
    /// and made unique by a digest.
    #[must_use]
    pub fn tool(&self, own: &str) -> String {
        let room = LONGEST - self.0.len() - BETWEEN.len();
        if !own.is_empty() && own.len() <= room && own.chars().all(is_plain) {
            return format!("{self}{BETWEEN}{own}");
        }
        let rewritten = own.chars().map(|it| if is_plain(it) { it } else { '_' });
        let rewritten: String = rewritten.take(room - DIGITS - 1).collect();
        let digest = Digest::of(own.as_bytes()).to_string();
        format!("{self}{BETWEEN}{rewritten}_{}", &digest[..DIGITS])
    }
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

/// The server of a tool's name, or of a pattern such as `github__*`.
#[must_use]
pub fn server_of(name: &str) -> Option<&str> {
    name.split_once(BETWEEN).map(|(server, _)| server)
}

/// Does this entry of an agent's list include the tool? `github__*` includes all of a server's.
#[must_use]
pub fn means(entry: &str, tool: &str) -> bool {
    match entry.strip_suffix('*').filter(|start| start.ends_with(BETWEEN)) {
        Some(start) => tool.starts_with(start),
        None => entry == tool,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn server(name: &str) -> ServerName {
        name.parse().unwrap()
    }

    #[test]
    fn a_servers_name_can_stand_in_front_of_a_tools() {
        for name in ["github", "my-files", "a_b", "X2"] {
            assert!(name.parse::<ServerName>().is_ok(), "{name}");
        }
        for name in ["", "2x", "_a", "-a", "a__b", "a_", "a b", "ä", "a.b", &"a".repeat(33)] {
            assert!(name.parse::<ServerName>().is_err(), "{name}");
        }
    }

    #[test]
    fn a_plain_name_stays_and_others_are_told_apart() {
        let files = server("files");
        assert_eq!(files.tool("read_file"), "files__read_file");
        let [one, other] = [files.tool("read.file"), files.tool("read/file")];
        assert!(one.starts_with("files__read_file_") && one != other, "{one} {other}");
        assert_ne!(files.tool(&"x".repeat(99)), files.tool(&"x".repeat(98)));
    }

    #[test]
    fn an_entry_means_one_tool_or_a_servers() {
        assert!(means("git__log", "git__log") && !means("git__log", "git__logs"));
        assert!(means("git__*", "git__log") && !means("git__*", "github__log"));
        assert!(!means("read*", "read_file") && !means("*", "read_file"));
        assert_eq!(server_of("git__*"), Some("git"));
        assert_eq!(server_of("read_file"), None);
    }

    proptest! {
        #[test]
        fn every_provider_takes_every_name(own in ".{0,200}") {
            let name = server("a-server").tool(&own);
            prop_assert!(name.len() <= LONGEST && name.chars().all(is_plain), "{}", name);
            prop_assert_eq!(server_of(&name), Some("a-server"));
        }
    }
}
