//! Counts what redaction would remove from the files below some folders, by rule: how many false
//! alarms it raises, and how long it takes.
//!
//! `cargo run --release -p stepwell-redact --example survey -- FOLDER… [--show]`
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it reports to a person")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stepwell_redact::Redactor;

#[derive(Default)]
struct Tally {
    files: usize,
    bytes: usize,
    lines: usize,
    changed: usize,
    spent: Duration,
    rules: BTreeMap<String, usize>,
}

fn main() {
    let (flags, folders): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|it| it.starts_with("--"));
    let show = flags.iter().any(|it| it == "--show");
    let redactor = Redactor::default();
    let start = Instant::now();
    let _ = redactor.redact("the first text");
    println!(
        "The first text took {} µs: the keywords of all rules were put together.",
        start.elapsed().as_micros()
    );
    for folder in folders {
        let mut tally = Tally::default();
        let mut waiting = vec![PathBuf::from(&folder)];
        while let Some(path) = waiting.pop() {
            if path.is_dir() && !path.is_symlink() {
                let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                let names = [".git", "target"];
                let kept = entries.filter(|it| !names.iter().any(|name| it.file_name() == *name));
                waiting.extend(kept.map(|it| it.path()));
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                look(&redactor, &path, &text, &mut tally, show);
            }
        }
        let Tally { files, bytes, lines, changed, spent, rules } = tally;
        let speed = bytes as f64 / 1e6 / spent.as_secs_f64().max(1e-9);
        println!("{folder}: {files} files, {lines} lines, {bytes} bytes, {speed:.0} MB/s");
        println!("  {changed} files hold something: {rules:?}");
    }
}

fn look(redactor: &Redactor, path: &Path, text: &str, tally: &mut Tally, show: bool) {
    let start = Instant::now();
    let redacted = redactor.redact(text).into_owned();
    tally.spent += start.elapsed();
    tally.files += 1;
    tally.bytes += text.len();
    tally.lines += text.lines().count();
    if redacted == text {
        return;
    }
    tally.changed += 1;
    for (before, after) in text.lines().zip(redacted.lines()) {
        if before == after {
            continue;
        }
        let rule = after.split("[redacted:").nth(1).and_then(|it| it.split(']').next());
        *tally.rules.entry(rule.unwrap_or("?").to_owned()).or_default() += 1;
        if show {
            println!("{}: {}", path.display(), before.trim().chars().take(160).collect::<String>());
        }
        // Lines after a key no longer match the original lines.
        if rule == Some("private-key") || rule == Some("key-lines") {
            break;
        }
    }
}
