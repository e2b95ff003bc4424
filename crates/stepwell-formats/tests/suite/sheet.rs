//! Files that hold one JSON object: laid out, taken in, written, and looked at as text.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::Value;
use stepwell::{SessionId, Stepwell};
use stepwell_formats::{Format, Mode, Report, take_in};

use crate::mirror::{found, told, written};

/// A file below a folder of its own.
pub(crate) fn laid(name: &str, text: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// Takes in what is found at a path, and must be one thing.
pub(crate) fn took(well: &Stepwell, path: &Path) -> Report {
    let found = found(path);
    assert_eq!(found.len(), 1, "{found:?}");
    take_in(well, Mode::Write, found[0].format, &found[0].path)
}

/// The one session of a report without a fault.
pub(crate) fn one(report: &Report) -> SessionId {
    assert!(report.fault.is_none(), "{report:?}");
    assert_eq!(report.sessions.len(), 1, "{report:?}");
    report.sessions[0].id.clone()
}

/// What a report warns of, in one text.
pub(crate) fn warned(report: &Report) -> String {
    let lines: Vec<_> = report.warnings.iter().map(|it| it.what.clone()).collect();
    lines.join("\n")
}

/// The object in a file of a session in memory that came from this text, written again.
pub(crate) fn returned(format: Format, name: &str, text: &str) -> String {
    let (folder, _) = laid(name, text);
    let (here, there) = (Stepwell::in_memory(), Stepwell::in_memory());
    let id = one(&took(&here, folder.path()));
    let last = Path::new(name).file_name().unwrap().to_str().unwrap();
    let (_again, path) = written(&here, &id, format, last);
    let report = take_in(&there, Mode::Write, format, &path);
    assert!(report.fault.is_none(), "{report:?}");
    let id_there = report.sessions[0].id.clone();
    assert_eq!(comparable(told(&here, &id)), comparable(told(&there, &id_there)));
    std::fs::read_to_string(path).unwrap()
}

/// What was told after the opening, which says where the file was; what a system keeps is
/// the same in any order of fields.
fn comparable(events: Vec<stepwell::Event>) -> Vec<(stepwell::Event, Option<Value>)> {
    let comparable = |event| match event {
        stepwell::Event::Foreign(foreign) => {
            let kept = serde_json::from_str(&foreign.data).ok();
            let data = if kept.is_some() { String::new() } else { foreign.data };
            (stepwell::model::Foreign { data, ..foreign }.into(), kept)
        }
        event => (event, None),
    };
    events.into_iter().skip(1).map(comparable).collect()
}

/// Fails unless the text is laid out as Python lays out JSON with two blanks, its fields in this order.
pub(crate) fn assert_laid_out(text: &str, fields: &[&str]) {
    let mut at = 0;
    for field in fields {
        let mark = format!("\n  \"{field}\": ");
        let found = text[at..].find(&mark).unwrap_or_else(|| panic!("{field} in {text}"));
        at += found + mark.len();
    }
    assert!(text.starts_with("{\n  \"") && text.ends_with("\n}"), "{text}");
}

pub(crate) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Any small JSON value without a null in it.
pub(crate) fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1e6..1e6_f64).prop_map(Value::from),
        crate::generate::text().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[a-z]{1,5}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}
