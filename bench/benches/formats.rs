//! Formats: how fast another agent's sessions come in, and how much memory that takes.
//!
//! `cargo bench -p stepwell-bench --bench formats`, and for memory
//! `cargo bench -p stepwell-bench --bench formats -- claude 2000` (or `codex 500`): a session of
//! so many MB, of nothing but short lines, in a process that does nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark that cannot do its work should stop"
)]

use std::fmt::Write;
use std::fs::File;
use std::io::{BufRead, BufWriter, Write as _};
use std::path::Path;

use stepwell::Stepwell;
use stepwell_bench::{Table, Times, timed};
use stepwell_formats::{Became, Format, Mode, take_in};

/// Turns in the transcript, each of nine calls: about 64 MB.
const TURNS: usize = 2_200;

/// The output of a tool, or the text of a model.
fn text(n: usize, length: usize) -> String {
    const WORDS: [&str; 8] =
        ["let", "x", "=", "compute(\\\"a\\\");", "// why", "path/to/file.rs", "\\n", "assert!(ok)"];
    let mut text = String::new();
    for k in 0.. {
        if text.len() >= length {
            break;
        }
        text.push_str(WORDS[(n * 7 + k * 3 + k / 5) % WORDS.len()]);
        text.push(' ');
    }
    text
}

/// A transcript of Claude Code, with lines as long as real ones are.
fn plant(path: &Path) -> u64 {
    let session = "11111111-2222-4333-8444-555555555555";
    let envelope = format!(
        r#""isSidechain":false,"userType":"external","cwd":"/home/dev/shop","sessionId":"{session}","version":"2.1.208","gitBranch":"main","timestamp":"2026-08-20T09:00:00.000Z""#
    );
    let usage = r#"{"input_tokens":3,"cache_creation_input_tokens":900,"cache_read_input_tokens":20000,"output_tokens":214}"#;
    let mut out = String::new();
    let mut parent = "null".to_owned();
    for n in 0..TURNS {
        let asked = text(n, 120);
        let _ = writeln!(
            out,
            r#"{{"parentUuid":{parent},{envelope},"type":"user","message":{{"role":"user","content":"{asked}"}},"uuid":"u{n}"}}"#
        );
        parent = format!("\"u{n}\"");
        for k in 0..9 {
            let said = text(n + k, 300);
            let back = text(n * 3 + k, 700 + (n * 13 + k * 101) % 1800);
            let _ = writeln!(
                out,
                r#"{{"parentUuid":{parent},{envelope},"message":{{"model":"claude-opus-4-6","id":"m{n}_{k}","type":"message","role":"assistant","content":[{{"type":"text","text":"{said}"}},{{"type":"tool_use","id":"t{n}_{k}","name":"Read","input":{{"file_path":"/home/dev/shop/src/a.rs"}}}}],"stop_reason":"tool_use","usage":{usage}}},"requestId":"r{n}_{k}","type":"assistant","uuid":"a{n}_{k}"}}"#
            );
            let _ = writeln!(
                out,
                r#"{{"parentUuid":"a{n}_{k}",{envelope},"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"t{n}_{k}","type":"tool_result","content":"{back}"}}]}},"uuid":"r{n}_{k}"}}"#
            );
            parent = format!("\"r{n}_{k}\"");
        }
    }
    std::fs::write(path, &out).unwrap();
    out.len() as u64
}

/// A line's id, of realistic length.
fn uuid(n: u64) -> String {
    format!("{n:08x}-1d2c-4b3a-8f7e-{n:012x}")
}

/// A transcript of Claude Code with short lines only. Now and then a line refers to one far above
/// it.
fn plant_claude(path: &Path, bytes: u64) -> u64 {
    let session = "11111111-2222-4333-8444-555555555555";
    let mut out = BufWriter::new(File::create(path).unwrap());
    let (mut written, mut n) = (0, 0);
    while written < bytes {
        let parent = match n {
            0 => "null".to_owned(),
            n if n % 100_000 == 99_998 => format!("\"{}\"", uuid((n / 2) | 1)),
            n => format!("\"{}\"", uuid(n - 1)),
        };
        let said = match n % 2 {
            0 => format!(r#""type":"user","message":{{"role":"user","content":"go on {n}"}}"#),
            _ => format!(
                r#""type":"assistant","message":{{"model":"claude-opus-4-6","id":"msg_{n:016x}","type":"message","role":"assistant","content":[{{"type":"text","text":"ok {n}"}}],"usage":{{"input_tokens":3,"output_tokens":2}}}},"requestId":"req_{n:016x}""#
            ),
        };
        let line = format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"/home/dev/shop","sessionId":"{session}","version":"2.1.208","gitBranch":"main",{said},"uuid":"{}","timestamp":"2026-08-20T09:00:00.000Z"}}"#,
            uuid(n)
        );
        writeln!(out, "{line}").unwrap();
        written += line.len() as u64 + 1;
        n += 1;
    }
    out.flush().unwrap();
    n
}

/// A rollout of Codex with short lines only.
fn plant_codex(path: &Path, bytes: u64) -> u64 {
    let mut out = BufWriter::new(File::create(path).unwrap());
    let at = "2026-08-20T09:00:00.000Z";
    let id = "01993b2c-5c0e-7d11-9d5e-3f2a1b0c9d8e";
    let meta = format!(
        r#"{{"timestamp":"{at}","type":"session_meta","payload":{{"id":"{id}","timestamp":"{at}","cwd":"/home/dev/shop","originator":"codex_cli_rs","cli_version":"0.63.0","model_provider":"openai"}}}}"#
    );
    writeln!(out, "{meta}").unwrap();
    let (mut written, mut n) = (meta.len() as u64, 0);
    while written < bytes {
        let (role, kind) = if n % 2 == 0 { ("user", "input") } else { ("assistant", "output") };
        let line = format!(
            r#"{{"timestamp":"{at}","type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"{kind}_text","text":"go on {n}"}}]}}}}"#
        );
        writeln!(out, "{line}").unwrap();
        written += line.len() as u64 + 1;
        n += 1;
    }
    out.flush().unwrap();
    n
}

/// The peak memory of this process, in MB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024 / 1_000_000
}

/// Imports a session of short lines once.
fn memory(system: &str, megabytes: u64) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (name, plant): (_, fn(&Path, u64) -> u64) = match system {
        "claude" => ("11111111-2222-4333-8444-555555555555.jsonl", plant_claude),
        "codex" => {
            ("rollout-2026-08-20T09-00-00-01993b2c-5c0e-7d11-9d5e-3f2a1b0c9d8e.jsonl", plant_codex)
        }
        other => panic!("no part {other}: claude codex"),
    };
    let path = folder.path().join(name);
    let lines = plant(&path, megabytes * 1_000_000);
    let format: Format = system.parse().unwrap();
    let before = peak();
    let time = timed(|| {
        let well = Stepwell::open(folder.path().join("store")).unwrap();
        let report = take_in(&well, Mode::Write, format, &path);
        assert!(report.fault.is_none(), "{:?}", report.fault);
        assert_eq!(report.sessions[0].became, Became::Imported);
        assert_eq!(report.warnings, []);
    });
    let table = Table::begin();
    let what = format!("import {megabytes} MB of {system}, {lines} lines");
    let figure = format!("{} MB at the peak, {:.0} s", peak(), time.as_secs_f64());
    table.figure(&what, &figure, &format!("before it {before} MB"), "≤ 200 MB");
}

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    match (words.next(), words.next()) {
        (Some(system), size) => memory(&system, size.map_or(200, |size| size.parse().unwrap())),
        (None, _) => throughput(),
    }
}

/// The rows of an imported session, inserted into one table without an index in one transaction: a
/// lower bound for imports into SQLite.
fn inserting(folder: &Path) -> Times {
    let store = rusqlite::Connection::open(folder.join("store1/stepwell.db")).unwrap();
    let mut read = store.prepare("SELECT pos, at, kind, version, chain, body FROM events").unwrap();
    let all = read.query_map([], |row| {
        let head: (i64, i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let tail: (Vec<u8>, String) = (row.get(4)?, row.get(5)?);
        Ok((head, tail))
    });
    let rows: Vec<_> = all.unwrap().map(Result::unwrap).collect();
    let mut made = 0;
    Times::of(5, || {
        made += 1;
        let mut table = rusqlite::Connection::open(folder.join(format!("bare{made}.db"))).unwrap();
        table.pragma_update(None, "page_size", 2048).unwrap();
        table.pragma_update(None, "journal_mode", "WAL").unwrap();
        table.pragma_update(None, "synchronous", "FULL").unwrap();
        table
            .execute_batch(
                "CREATE TABLE event (pos INTEGER PRIMARY KEY, at, kind, version, chain, body)",
            )
            .unwrap();
        let all = table.transaction().unwrap();
        let mut insert = all.prepare("INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5, ?6)").unwrap();
        for ((pos, at, kind, version), (chain, body)) in &rows {
            insert.execute(rusqlite::params![pos, at, kind, version, chain, body]).unwrap();
        }
        drop(insert);
        all.commit().unwrap();
    })
}

fn throughput() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("11111111-2222-4333-8444-555555555555.jsonl");
    let bytes = plant(&path);
    let claude: Format = "claude".parse().unwrap();
    let mut store = 0;
    let import = || {
        store += 1;
        let well = Stepwell::open(folder.path().join(format!("store{store}"))).unwrap();
        let report = take_in(&well, Mode::Write, claude, &path);
        assert!(report.fault.is_none() && report.sessions[0].became == Became::Imported);
    };
    let parse = || {
        let file = std::io::BufReader::new(File::open(&path).unwrap());
        for line in file.lines() {
            let value: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            std::hint::black_box(value);
        }
    };
    let (import, parse) = Times::of_both(5, 1, import, parse);
    let inserted = inserting(folder.path());
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let speed = |times: &Times| bytes as f64 / 1e6 / times.p50().as_secs_f64();
    let table = Table::begin();
    let what = format!("import a transcript of {} MB into a store", bytes / 1_000_000);
    table.row(&what, &import, ("read + serde_json", &parse), "≤ 2.5x");
    let (fast, bare) = (speed(&import), speed(&parse));
    let beside = format!("read + serde_json {bare:.0} MB/s");
    let figure = format!("{fast:.0} MB/s, {:.2}x the throughput", fast / bare);
    table.figure("the same, as throughput", &figure, &beside, "≥ 0.5x");
    let what = "its rows into one table of SQLite";
    table.row(what, &inserted, ("read + serde_json", &parse), "");
}
