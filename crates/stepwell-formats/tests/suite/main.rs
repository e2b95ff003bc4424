//! The one test binary of the crate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod architect;
mod bad_input;
mod clashes;
mod claude;
mod codex;
mod continuing;
mod converting;
mod crash;
mod damage;
mod drafts;
mod forks;
mod gaia;
mod garbage;
mod generate;
mod goose;
mod growing;
mod hostile;
mod keeping;
mod m31a;
mod malice;
mod mirror;
mod mortal;
mod pages;
mod round_trip;
mod seeds;
mod sheet;
mod strands_cli;
mod strands_cli_back;
mod strands_groups;
mod strands_loader;
mod strands_original;
mod strands_sdk;
mod support;
mod transcript;
mod work;
