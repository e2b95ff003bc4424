//! The command line, as its users meet it: each test is a transcript of commands with
//! their stdout, stderr and exit codes.
//!
//! Snapshots are in `snapshots/`. To take them anew: `INSTA_UPDATE=always cargo test -p
//! stepwell-cli`, then look at the difference.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod acpx;
mod agents;
mod altered_logs;
mod answers;
mod chat_elsewhere;
mod chatting;
mod cleaning;
mod configuring;
mod diffing;
mod documents;
mod editors;
mod elsewhere;
mod erasing;
mod flow_questions;
mod flows;
mod foreign;
mod git_settings;
mod going_on;
mod guards;
mod half_rewound;
mod hiding;
mod hooks;
mod ledger_rows;
mod looking;
mod mcp;
mod mcp_http;
mod mcp_list;
mod migrating;
mod moving;
mod naming;
mod naming_wrongly;
mod newcomer;
mod others;
mod others_calls;
mod piping;
mod planning;
mod pricing;
mod remembering;
mod repairing;
mod rewinding;
mod rewound_questions;
mod running;
mod seat;
mod serving;
mod setting_up;
mod shared_store;
mod shortening;
mod specs;
mod stopping;
mod strands;
mod strangers;
mod subagent_worktrees;
mod subagents;
mod summaries;
mod talking;
mod teams;
mod terminal;
mod test_env;
mod tmux;
mod together;
mod web;
mod working;
mod worktrees;
