//! Formats: how fast another agent's sessions come in.
//!
//! `cargo bench -p stepwell-bench --bench formats`.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot do its work should stop")]

use std::fmt::Write;
use std::io::BufRead;
use std::path::Path;

use stepwell::Stepwell;
use stepwell_bench::{Table, Times};
use stepwell_formats::{Became, Format, Mode, take_in};

/// Turns in the transcript, each of nine calls: about 64 MB.
const TURNS: usize = 2_200;

/// What a tool returned, or a model said.
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

fn main() {
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
        let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
        for line in file.lines() {
            let value: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            std::hint::black_box(value);
        }
    };
    let (import, parse) = Times::of_both(5, 1, import, parse);
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let speed = |times: &Times| bytes as f64 / 1e6 / times.p50().as_secs_f64();
    let table = Table::begin();
    let what = format!("import a transcript of {} MB into a store", bytes / 1_000_000);
    table.row(&what, &import, ("read + serde_json", &parse), "≤ 2.5x");
    let (fast, bare) = (speed(&import), speed(&parse));
    let beside = format!("read + serde_json {bare:.0} MB/s");
    let figure = format!("{fast:.0} MB/s, {:.2}x the throughput", fast / bare);
    table.figure("the same, as throughput", &figure, &beside, "≥ 0.4x");
}
