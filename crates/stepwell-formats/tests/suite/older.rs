//! Older tellings of a session that came in before: what the files say of themselves decides,
//! and not when they were written to disk.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use stepwell::Stepwell;
use stepwell::log::Head;
use stepwell_formats::{Became, Found, ImportedSession, Mode, take_in};
use tempfile::TempDir;

use crate::mirror::found;
use crate::seeds::{all, built, files, lay_out};
use crate::support::names;
use crate::transcript::Transcript;

/// A session in two states, made of a fixture.
struct Case {
    /// The folder of the fixture.
    fixture: &'static str,
    /// What the older telling says otherwise than the fixture, and the newer one.
    older: &'static [(&'static str, &'static str)],
    newer: &'static [(&'static str, &'static str)],
}

const CASES: [Case; 6] = [
    Case {
        fixture: "architect",
        older: &[
            (r#""status": "success""#, r#""status": "partial""#),
            (r#""llm_done""#, r#""max_steps""#),
            ("1778130970.8755", "1778130960.5"),
        ],
        newer: &[],
    },
    Case {
        fixture: "gaia/.claude/session/agent-20260510-030500-0b5e55ed",
        older: &[],
        newer: &[
            (r#""last_updated": "2026-05-10T03:05"#, r#""last_updated": "2026-05-10T04:05"#),
            (r#""B17""#, r#""B18""#),
            (r#""error_count": 0"#, r#""error_count": 2"#),
        ],
    },
    Case {
        fixture: "m31a/project",
        older: &[],
        newer: &[
            ("**Timestamp:** 2026-05-09T11:00:10", "**Timestamp:** 2026-05-09T12:00:10"),
            (r#""label":"allergens""#, r#""label":"nuts""#),
        ],
    },
    Case {
        fixture: "strands-cli/chain-asking",
        older: &[],
        newer: &[
            (r#""status": "paused""#, r#""status": "running""#),
            (r#""updated_at": "2026-03-09T11:47:13"#, r#""updated_at": "2026-03-09T12:47:13"#),
            (r#""active": true"#, r#""active": false"#),
            (r#""user_response": null"#, r#""user_response": "paint it""#),
        ],
    },
    Case {
        fixture: "strands-sdk/session_till",
        older: &[],
        newer: &[
            (r#""updated_at": "2026-03-11T16:40:13"#, r#""updated_at": "2026-03-11T17:40:13"#),
            (r#""drawer": "left""#, r#""drawer": "right""#),
        ],
    },
    Case {
        fixture: "goose/sessions",
        older: &[],
        newer: &[("2026-05-06 04:31:00", "2026-05-06 05:31:00"), ("'Price tags'", "'Labels'")],
    },
];

impl Case {
    /// A telling in a folder of its own, whose files were changed at that second.
    fn told(&self, edits: &[(&str, &str)], second: u64) -> TempDir {
        let raw = tempfile::tempdir().unwrap();
        let mut all = files(&all().join(self.fixture));
        for (from, to) in edits {
            let mut there = false;
            for (_, bytes) in &mut all {
                let text = String::from_utf8_lossy(bytes).into_owned();
                there |= text.contains(from);
                *bytes = text.replace(from, to).into_bytes();
            }
            assert!(there, "{from} is not in {}", self.fixture);
        }
        // Some systems know their sessions by the folder that they are in.
        let folder = Path::new(self.fixture);
        let within = all.into_iter().map(|(name, bytes)| (folder.join(name), bytes));
        lay_out(raw.path(), &within.collect::<Vec<_>>());
        let there = built(raw.path());
        date(there.path(), second);
        there
    }
}

/// Says of all files below a folder that they were changed at that second.
pub(crate) fn date(folder: &Path, second: u64) {
    for (name, _) in files(folder) {
        let file = std::fs::File::options().write(true).open(folder.join(name)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(second)).unwrap();
    }
}

/// Imports a folder. The answer is what became of its sessions, and what was said of it.
pub(crate) fn import(well: &Stepwell, folder: &Path) -> (Vec<ImportedSession>, String) {
    let (mut taken, mut warnings) = (Vec::new(), String::new());
    for Found { path, format } in found(folder) {
        let report = take_in(well, Mode::Write, format, &path);
        assert!(report.fault.is_none(), "{:?}", report.fault);
        taken.extend(report.sessions);
        warnings.extend(report.warnings.into_iter().map(|it| it.what + "\n"));
    }
    (taken, warnings)
}

/// Was it said that a telling is older?
pub(crate) fn is_older(warnings: &str) -> bool {
    ["tells more or newer", "older than what is here"].iter().any(|it| warnings.contains(it))
}

/// How all sessions stand.
pub(crate) fn heads(well: &Stepwell) -> Vec<Head> {
    let ids = names(well).into_iter().map(|name| name.parse().unwrap());
    ids.map(|id| well.info(&id).unwrap().head).collect()
}

/// How they stand for a user, wherever they came from.
fn info(well: &Stepwell) -> Vec<impl PartialEq + std::fmt::Debug> {
    let all = heads(well).into_iter();
    let told = all.map(|it| {
        (it.id, it.status, it.stop_reason, it.label, it.phase, it.open_gates, it.metadata)
    });
    told.collect()
}

#[test]
fn an_older_telling_is_left_out_wherever_it_lies_and_whenever_it_was_copied() {
    for case in &CASES {
        let well = Stepwell::in_memory();
        let newer = case.told(case.newer, 1_000);
        import(&well, newer.path());
        let before = heads(&well);
        let older = case.told(case.older, 4_000_000_000);
        // From elsewhere, and put back over the newer one.
        for again in [older.path(), newer.path()] {
            if again == newer.path() {
                lay_out(again, &files(older.path()));
            }
            let (taken, warnings) = import(&well, again);
            let unchanged = taken.iter().all(|it| it.became == Became::Unchanged);
            assert!(unchanged, "{}: {taken:?}", case.fixture);
            assert!(is_older(&warnings), "{}: {warnings:?}", case.fixture);
            assert_eq!(heads(&well), before, "{}", case.fixture);
        }
    }
}

#[test]
fn a_newer_telling_is_taken_in_whenever_it_was_copied() {
    for case in &CASES {
        let (well, fresh) = (Stepwell::in_memory(), Stepwell::in_memory());
        let older = case.told(case.older, 4_000_000_000);
        import(&well, older.path());
        let newer = case.told(case.newer, 1_000);
        let (taken, warnings) = import(&well, newer.path());
        let updated = taken.iter().any(|it| it.became == Became::Updated);
        assert!(updated && !is_older(&warnings), "{}: {warnings}", case.fixture);
        import(&fresh, newer.path());
        assert_eq!(format!("{:?}", info(&well)), format!("{:?}", info(&fresh)));
        let (taken, _) = import(&well, newer.path());
        assert!(taken.iter().all(|it| it.became == Became::Unchanged), "{}", case.fixture);
    }
}

#[test]
fn a_copy_whose_description_is_torn_does_not_take_a_finished_session_back() {
    let case = Case { fixture: "strands-cli/chain-asking", older: &[], newer: &[] };
    let well = Stepwell::in_memory();
    let whole = case.told(&[(r#""status": "paused""#, r#""status": "completed""#)], 1_000);
    import(&well, whole.path());
    let before = heads(&well);
    let torn = case.told(&[], 4_000_000_000);
    for (name, bytes) in files(torn.path()) {
        if name.file_name().is_some_and(|name| name == "session.json") {
            std::fs::write(torn.path().join(name), &bytes[..bytes.len() / 4]).unwrap();
        }
    }
    date(torn.path(), 4_000_000_000);
    let (_, warnings) = import(&well, torn.path());
    let status = |heads: &[Head]| heads.iter().map(|it| it.status).collect::<Vec<_>>();
    assert_eq!(status(&heads(&well)), status(&before), "{warnings}");
    let (taken, _) = import(&well, whole.path());
    assert!(taken.iter().all(|it| it.became == Became::Unchanged), "{taken:?}");
    assert_eq!(status(&heads(&well)), status(&before));
}

#[test]
fn a_file_that_was_put_back_changes_nothing_and_is_told_of() {
    let (well, mut file) = (Stepwell::in_memory(), Transcript::new());
    file.user("u1", "", "one").text("a1", "u1", "m1", "first").user("u2", "a1", "two");
    let path = file.write();
    import(&well, &path);
    let before = heads(&well);
    let whole = file.lines.clone();
    for cut in 1..whole.len() {
        file.lines = whole[..cut].to_vec();
        let (taken, warnings) = import(&well, &file.write());
        assert_eq!(taken[0].became, Became::Unchanged, "{cut} lines");
        assert!(warnings.contains("older than what is here"), "{cut} lines: {warnings}");
        assert_eq!(heads(&well), before);
    }
}

#[test]
fn of_copies_that_differ_only_in_their_titles_the_one_written_later_counts() {
    let case = Case { fixture: "claude/projects", older: &[], newer: &[] };
    let titled = |name: &str, second| case.told(&[("cake-pickup", name)], second);
    let well = Stepwell::in_memory();
    let labels = || heads(&well).into_iter().filter_map(|it| it.label).collect::<Vec<_>>();
    let counts = || {
        let all = heads(&well).into_iter().map(|it| (it.id, it.messages, it.steps));
        all.collect::<Vec<_>>()
    };
    // All of them stay where they are: of one that is left alone, nothing is left to compare.
    let first = titled("first", 2_000);
    import(&well, first.path());
    let (sessions, before) = (counts(), labels());
    assert!(before.iter().any(|it| it == "first"), "{before:?}");
    // Written before: nothing changes. Written later: only the title does.
    let earlier = titled("before", 1_000);
    import(&well, earlier.path());
    assert_eq!((labels(), counts()), (before.clone(), sessions.clone()));
    let later = titled("later", 3_000);
    import(&well, later.path());
    let renamed = |it: String| if it == "first" { "later".to_owned() } else { it };
    assert_eq!(labels(), before.into_iter().map(renamed).collect::<Vec<_>>());
    assert_eq!(counts(), sessions);
}
