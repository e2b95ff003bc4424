//! Archives whose sessions have names that other sessions have here.

use std::path::{Path, PathBuf};

use stepwell::Stepwell;
use stepwell::model::Origin;
use stepwell_formats::{Became, Format, Mode, take_in};

use crate::mirror::{became, taken};
use crate::support::{exported, id, log, names, root, say, subagent};

/// An archive of a session and its subagent's, in which this is said.
fn archive(folder: &Path, name: &str, said: &str) -> PathBuf {
    let well = Stepwell::in_memory();
    say(&mut root(&well, "a"), &[said]);
    say(&mut subagent(&well, "a", "b"), &["the same"]);
    let path = folder.join(format!("{name}.json"));
    std::fs::write(&path, exported(&well, "a", Format::JSON)).unwrap();
    path
}

#[test]
fn a_session_of_an_archive_whose_name_is_taken_gets_a_suffix() {
    let folder = tempfile::tempdir().unwrap();
    let well = Stepwell::in_memory();
    let [one, two, three] = ["one", "two", "three"].map(|name| archive(folder.path(), name, name));
    taken(&well, &one);
    for (path, suffix) in [(&two, "-2"), (&three, "-3")] {
        let look = take_in(&well, Mode::Look, Format::JSON, path);
        assert!(look.fault.is_none(), "{:?}", look.fault);
        assert_eq!(became(&look.sessions, Became::Imported), 2, "{:?}", look.sessions);
        let first = taken(&well, path);
        assert_eq!(first, look.sessions);
        let (parent, child) = (id(&format!("a{suffix}")), id(&format!("b{suffix}")));
        assert_eq!((&first[0].id, &first[0].instead_of), (&parent, &Some(id("a"))));
        let origin = well.info(&child).unwrap().head.origin;
        assert_eq!(origin, Origin::Subagent { parent });
        assert_eq!(became(&taken(&well, path), Became::Unchanged), 2);
    }
    assert_eq!(names(&well), ["a", "a-2", "a-3", "b", "b-2", "b-3"]);
    assert_eq!(became(&taken(&well, &one), Became::Unchanged), 2);
    assert_eq!(log(&well, &id("a")).len(), 2);
}
