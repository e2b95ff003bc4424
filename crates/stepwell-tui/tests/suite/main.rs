//! What the terminal does with every key and command, without a terminal.

mod chat;
mod commands;
mod pages;
mod panics;
mod questions;
mod screen;
mod stage;
mod watching;
mod working;
