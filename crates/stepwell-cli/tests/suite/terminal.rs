//! On a real terminal: widths, colours, questions.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use insta::assert_snapshot;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::test_env::{AUTH, TestEnv};

/// Runs a command on a terminal of so many columns, where someone answers a question.
fn on_terminal(env: &TestEnv, columns: u16, args: &[&str], typed: &str) -> (String, Option<i32>) {
    let mut answer = Some(typed).filter(|typed| !typed.is_empty());
    watched(env.command(args), env, columns, |seen, _| match seen.ends_with("[y/N] ") {
        true => answer.take().unwrap_or_default().to_owned(),
        false => String::new(),
    })
}

/// Runs a command on a terminal. Someone watches what it shows, and types or does something.
pub(crate) fn watched(
    mut command: Command,
    env: &TestEnv,
    columns: u16,
    mut person: impl FnMut(&str, &Child) -> String,
) -> (String, Option<i32>) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let side = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    command.stdin(Stdio::from(side())).stdout(Stdio::from(side())).stderr(Stdio::from(side()));
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut terminal = File::from(terminal);
    // Reading ends with an error when the last one to have it open has gone.
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = terminal.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..n]);
        // A person answers when they are asked; the terminal shows what they type there.
        let typed = person(&String::from_utf8_lossy(&seen), &child);
        terminal.write_all(typed.as_bytes()).unwrap();
    }
    let code = child.wait().unwrap().code();
    (env.redact(&String::from_utf8(seen).unwrap().replace("\r\n", "\n")), code)
}

/// The text without colours.
fn plain(text: &str) -> String {
    regex::Regex::new("\u{1b}\\[[0-9;]*m").unwrap().replace_all(text, "").into_owned()
}

#[test]
fn a_list_fits_the_terminal() {
    let env = TestEnv::furnished();
    let mut all = String::new();
    for columns in [100, 80, 40, 20] {
        let (seen, code) = on_terminal(&env, columns, &["sessions"], "");
        assert_eq!(code, Some(0));
        // Only the status is coloured, and 20 columns have no room for it.
        assert_eq!(seen.contains('\u{1b}'), columns > 20, "{seen}");
        for line in plain(&seen).lines() {
            let width = unicode_width(line);
            assert!(width <= usize::from(columns), "{columns}: {width}: {line}");
        }
        all.push_str(&format!("{columns} columns\n{}\n", plain(&seen)));
    }
    assert_snapshot!(all);
}

#[test]
fn the_other_tables_fit_a_narrow_terminal() {
    let env = TestEnv::furnished();
    env.quietly(&["delete", AUTH]).line();
    env.quietly(&["agent", "create", "--agent", "looker", "--purpose", "look", "--id", "a-1"])
        .line();
    let mut all = String::new();
    for args in [&["trash", "list"][..], &["agent", "list"], &["config"], &["du", "-n", "2"]] {
        let (seen, code) = on_terminal(&env, 40, args, "");
        assert_eq!(code, Some(0));
        // The sum below what takes room is a sentence, which the terminal wraps.
        for line in plain(&seen).lines().filter(|line| !line.starts_with("In all")) {
            assert!(unicode_width(line) <= 40, "{args:?}: {line}");
        }
        all.push_str(&format!("$ stepwell {}\n{}\n", args.join(" "), plain(&seen)));
    }
    let sizes = regex::Regex::new(r"[\d.]+ K?B").unwrap();
    assert_snapshot!(sizes.replace_all(&all, "[SIZE]"));
}

fn unicode_width(line: &str) -> usize {
    // Han characters take two columns each; the furniture has no other wide ones.
    line.chars().map(|c| if ('\u{4e00}'..='\u{9fff}').contains(&c) { 2 } else { 1 }).sum()
}

#[test]
fn no_colour_means_none_on_a_terminal_either() {
    let mut env = TestEnv::furnished();
    env.set("NO_COLOR", "1");
    let (seen, _) = on_terminal(&env, 80, &["sessions"], "");
    assert!(!seen.contains('\u{1b}'), "{seen}");
}

#[test]
fn hostile_tasks_do_not_reach_the_terminal() {
    let mut env = TestEnv::furnished();
    env.set("NO_COLOR", "1");
    for args in [
        &["sessions"][..],
        &["show", "@last"],
        &["show", "@last", "--events"],
        &["search", "everyone"],
        &["du"],
    ] {
        let (seen, _) = on_terminal(&env, 80, args, "");
        assert!(!seen.contains('\u{1b}'), "{args:?}: {seen:?}");
    }
}

#[test]
fn a_question_is_asked_and_its_answer_heeded() {
    let mut env = TestEnv::furnished();
    env.set("NO_COLOR", "1");
    let mut all = String::new();
    for (args, typed) in [
        (&["cleanup", "--older-than", "7"][..], "n\n"),
        (&["purge", AUTH], "\n"),
        (&["cleanup", "--older-than", "7"], "y\n"),
        (&["trash", "empty"], "no\n"),
        (&["trash", "empty"], "yes\n"),
    ] {
        let (seen, code) = on_terminal(&env, 200, args, typed);
        all.push_str(&format!("$ stepwell {}\n{seen}exit {code:?}\n\n", args.join(" ")));
    }
    let size = regex::Regex::new(r"[\d.]+ K?B").unwrap();
    assert_snapshot!(size.replace_all(&all, "[SIZE]"));
}

#[test]
fn a_hook_on_a_terminal_says_what_it_wants() {
    let env = TestEnv::new();
    let (seen, code) = on_terminal(&env, 80, &["hook", "pre-delegate"], "");
    assert_eq!(code, Some(1));
    assert!(seen.contains("read from stdin") && seen.contains("invalid_json"), "{seen}");
}

#[test]
fn a_run_without_a_task_offers_to_resume() {
    let mut env = TestEnv::new();
    env.set("NO_COLOR", "1");
    env.file("stepwell.toml", "[sessions]\nresume_on_startup = true\n");
    env.file("quick.yaml", "- text: Done.\n");
    let begin = ["run", "the task", "--model", "script:quick.yaml", "--max-tokens", "1"];
    assert_eq!(env.quietly(&begin).code, Some(5));
    let args = ["run", "--model", "script:quick.yaml"];
    let (seen, code) = on_terminal(&env, 80, &args, "n\n");
    assert_eq!(code, Some(1), "{seen}");
    assert!(seen.starts_with("Resume [ID], \"the task\"? [y/N] "), "{seen}");
    assert!(seen.contains("nothing was done") && !seen.contains("Done."), "{seen}");
    let (seen, code) = on_terminal(&env, 80, &args, "y\n");
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("Done."), "{seen}");
}
