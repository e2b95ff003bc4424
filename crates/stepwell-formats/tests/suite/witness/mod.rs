//! The real programs go on with what is written here, and what they write is read here.
//!
//! `./install-witnesses` installs them in the versions of `witnesses.txt`; `./check` runs it. A
//! model server on loopback answers them and records what they ask.

mod claude;
mod claude_imports;
mod claude_runs;
mod codex;
mod next_request;
mod sessions;
mod test_env;

pub(crate) use test_env::program;
