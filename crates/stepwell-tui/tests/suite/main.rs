//! What the terminal does with every key and command, without a terminal.

mod allowing;
mod answers;
mod belonging;
mod chat;
mod coming_back;
mod commands;
mod narrow;
mod pages;
mod panics;
mod questions;
mod screen;
mod stage;
mod watching;
mod working;
