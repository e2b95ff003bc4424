//! The MCP servers that agents can use.

use stepwell_wire::{McpServer, McpState};

use crate::table::{Column, Table, left};
use crate::text::{count, cut, one_line, visible};

const COLUMNS: &[Column] =
    &[left("NAME"), left("TRANSPORT"), left("TRUSTED"), left("STATE"), left("REACH"), left("FROM")];

/// A line for each.
#[must_use]
pub fn table(servers: &[McpServer]) -> Table {
    let mut table = Table::new(COLUMNS);
    for server in servers {
        table.push(vec![
            visible(&server.name).into(),
            server.transport.as_str().into(),
            if server.trusted { "yes" } else { "no" }.into(),
            state(server).into(),
            one_line(&server.reach).into(),
            one_line(&server.source).into(),
        ]);
    }
    table
}

fn state(server: &McpServer) -> String {
    match server.state {
        McpState::Ready => count(server.tools.len(), "tool"),
        state => state.as_str().to_owned(),
    }
}

/// What does not fit a line: why a server cannot be used, and its tools, cut to so many columns.
#[must_use]
pub fn more(server: &McpServer, columns: Option<usize>) -> Vec<String> {
    let name = visible(&server.name);
    let mut lines = Vec::new();
    if let Some(why) = &server.problem {
        lines.extend([String::new(), format!("{name}: {}", one_line(why))]);
    }
    if !server.tools.is_empty() {
        lines.extend([String::new(), name]);
    }
    for tool in &server.tools {
        let asked = if tool.read_only { "reads" } else { "asks" };
        let line = one_line(&format!("{} ({asked}) {}", tool.name, tool.description));
        lines.push(columns.map_or(line.clone(), |columns| cut(&line, columns)));
    }
    lines
}
