//! What a client brings to a session: its MCP servers, and folders besides the workspace.

use std::path::{Path, PathBuf};

use stepwell_agent::mcp::{Address, DEFAULT_START, Program, Reach, Server, ServerName};

use crate::rpc::{Result, RpcError};
use crate::turn::Brought;

use super::input::{McpServer, RemoteKind};

/// What a client brings to a session: its MCP servers, and folders besides the workspace.
pub(super) fn brought(
    servers: Vec<McpServer>,
    folders: Vec<PathBuf>,
    cwd: &Path,
) -> Result<Brought> {
    folders.iter().try_for_each(|folder| check_folder("an additional directory", folder))?;
    let servers = servers.into_iter().map(|server| read_server(server, cwd));
    Ok(Brought { servers: servers.collect::<Result<_>>()?, folders })
}

/// Fails if a folder is named by no absolute path, or is not there.
pub(super) fn check_folder(what: &str, folder: &Path) -> Result<()> {
    let wrong = match (folder.is_absolute(), folder.is_dir()) {
        (true, true) => return Ok(()),
        (true, false) => "is no folder that is there",
        (false, _) => "is no absolute path",
    };
    Err(RpcError::invalid_params(format!("{what} {wrong}: {}", folder.display())))
}

fn read_server(server: McpServer, cwd: &Path) -> Result<Server> {
    let (name, reach) = match server {
        McpServer::Remote { kind: RemoteKind::Sse, name, .. } => {
            let why = format!("{name}: servers over sse are not supported");
            return Err(RpcError::invalid_params(why));
        }
        McpServer::Remote { name, url, headers, .. } => {
            let headers = headers.into_iter().map(|it| (it.name, it.value)).collect();
            (name, Reach::Address(Address { url, headers, key: None }))
        }
        McpServer::Program { name, command, args, env } => {
            let program = Program {
                program: command.to_string_lossy().into_owned(),
                arguments: args,
                variables: env.into_iter().map(|it| (it.name, it.value)).collect(),
                folder: cwd.to_owned(),
            };
            (name, Reach::Program(program))
        }
    };
    let name = server_name(&name)?;
    Ok(Server { name, reach, start: DEFAULT_START, timeout: None })
}

/// A name that can stand in front of a tool's: clients' names may hold anything.
fn server_name(name: &str) -> Result<ServerName> {
    let plain = |it: char| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' };
    let mut plain: String = name.chars().map(plain).take(32).collect();
    while plain.contains("__") {
        plain = plain.replace("__", "_");
    }
    let plain = plain.trim_matches(['_', '-']);
    plain.parse().map_err(|why: String| RpcError::invalid_params(format!("{name:?}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_server_gets_a_name_that_tools_can_have() {
        for (given, name) in [("github", "github"), ("My Files!", "My_Files"), ("a__b_", "a_b")] {
            assert_eq!(server_name(given).unwrap().as_str(), name);
        }
        assert!(server_name("…").is_err());
    }
}
