use proptest::prelude::*;
use serde_json::json;

use super::*;

const THEIRS: &str = "// my settings\n{\n  \"theme\": \"dark\", // not \"light\", {\n  /* \"servers\": {} */\n  \
     \"servers\": {\n    // the first\n    \"one\": {\"command\": \"a \\\" } b\", \"args\": [1, -2.5e3, null,],},\n  },\n}\n";

fn added(text: &str) -> String {
    let document = Document::read(text).unwrap();
    let (at, piece) = document.insertion("servers", "ours", &json!({"command": "s"})).unwrap();
    format!("{}{piece}{}", &text[..at], &text[at..])
}

fn removed(text: &str) -> String {
    let places = Document::read(text).unwrap().removal("servers", "ours").unwrap();
    super::super::without(text, &places)
}

fn check_added_and_removed(text: &str) {
    let with = added(text);
    let document = Document::read(&with).unwrap_or_else(|why| panic!("{why}: {with}"));
    let found = document.entry("servers", "ours").unwrap();
    assert_eq!(found, Some(json!({"command": "s"})), "{with}");
    check_removed(&with);
}

/// Whatever stands around an entry is still there when that is removed.
fn check_removed(with: &str) {
    let document = Document::read(with).unwrap_or_else(|why| panic!("{why}: {with}"));
    let after = removed(with);
    let rest = Document::read(&after).unwrap_or_else(|why| panic!("{why}: {with}\n->\n{after}"));
    assert_eq!(rest.entry("servers", "ours").unwrap(), None, "{after}");
    let mut all = document.all();
    all["servers"].as_object_mut().unwrap().remove("ours");
    assert_eq!(rest.all(), all, "{with}\n->\n{after}");
    let comments = document.comments("servers", "ours").unwrap();
    assert_eq!(rest.comments("servers", "ours").unwrap(), comments, "{with}\n->\n{after}");
}

#[test]
fn an_entry_is_added_and_removed_and_nothing_else_changes() {
    for text in [
        THEIRS,
        "{}",
        "{\"servers\":{}}",
        "{\"servers\":{\"one\":1}}",
        "{\"a\":1}",
        "{ // mine\r\n  \"servers\": { // all\r\n    \"one\": 1\r\n  }\r\n}\r\n",
        "// nothing yet",
        "\u{feff}{\"servers\": {\"one\": 1}}",
        "",
    ] {
        check_added_and_removed(text);
    }
    let document = Document::read(THEIRS).unwrap();
    let one = document.entry("servers", "one").unwrap().unwrap();
    assert_eq!(one, json!({"command": "a \" } b", "args": [1, -2500.0, null]}));
    assert_eq!(removed(&added(THEIRS)), THEIRS);
}

#[test]
fn a_comment_above_an_entry_does_not_swallow_its_neighbour() {
    let with =
        "{\n  \"servers\": {\n    // my servers\n    \"ours\": {\"a\": 1}, \"other\": {}\n  }\n}\n";
    check_removed(with);
    let expected = "{\n  \"servers\": {\n    // my servers\n    \"other\": {}\n  }\n}\n";
    assert_eq!(removed(with), expected);
    for with in [
        "{\"servers\": { // mine\n\"ours\": {} }}",
        "{\"servers\": {\"a\": 1 // one\n, \"ours\": {} }}",
        "{\"servers\": {\"a\": 1, // one\n \"ours\": {} /* mine */, // ours\n}}",
        "{\"servers\": {\"ours\": {/* inside */}, // behind\n \"a\": 1}}",
    ] {
        check_removed(with);
    }
}

#[test]
fn what_is_not_sound_throughout_is_refused_where_it_is_wrong() {
    for wrong in [
        "[]",
        "{",
        "{\"a\" 1}",
        "{\"a\":}",
        "{\"a\":1 \"b\":2}",
        "{a:1}",
        "x",
        "{\"servers\": {}, \"x\": {a b c}}",
        "{\"servers\": {}} trailing {{{",
        "{\"a\": [1, }",
        "{\"a\": tru}",
        "{\"a\": \"b\nc\"}",
        "{,}",
        "{\"a\": 1} /* open",
    ] {
        assert!(Document::read(wrong).is_err(), "{wrong}");
    }
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Document::read(&deep).err().unwrap().contains("nesting depth"));
    for wrong in ["{\"servers\": 5}", "{\"servers\": {\"ours\": 1}, \"servers\": {}}"] {
        let document = Document::read(wrong).unwrap();
        assert!(document.entry("servers", "ours").is_err(), "{wrong}");
        assert!(document.insertion("servers", "ours", &json!({})).is_err(), "{wrong}");
        assert!(document.removal("servers", "ours").is_err(), "{wrong}");
    }
}

/// What may stand between two tokens.
fn space() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => Just(String::new()),
        4 => "[ \t]{1,3}",
        3 => Just("\n".to_owned()),
        1 => Just("\r\n".to_owned()),
        2 => "// [a-z\"{},:]{0,6}\n",
        2 => "/\\* [a-z\"{},:\n]{0,6} \\*/",
    ];
    prop::collection::vec(piece, 0..3).prop_map(|it| it.concat())
}

/// A value of somebody else's.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("-2.5e3".to_owned()),
        Just("true".to_owned()),
        "\"[a-z{}/ ,:]{0,5}\"",
        Just("{}".to_owned()),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            (space(), inner.clone(), space()).prop_map(|(a, it, b)| format!("[{a}{it}{b}]")),
            (space(), inner, space()).prop_map(|(a, it, b)| format!("{{{a}\"k\":{b}{it}}}")),
        ]
    })
}

/// An object with these entries, all that can stand between them in between.
fn object(entries: Vec<(String, String, [String; 4])>, trailing: bool) -> String {
    let last = entries.len();
    let one = |(n, (key, value, [a, b, c, d])): (usize, (String, String, [String; 4]))| {
        let comma = if n + 1 < last || trailing { "," } else { "" };
        format!("{a}\"{key}\"{b}:{c}{value}{d}{comma}")
    };
    let all: String = entries.into_iter().enumerate().map(one).collect();
    format!("{{{all}}}")
}

prop_compose! {
    fn spaces()(a in space(), b in space(), c in space(), d in space()) -> [String; 4] {
        [a, b, c, d]
    }
}

prop_compose! {
    /// Settings with other servers, and perhaps with ours among them.
    fn settings()(
        others in prop::collection::vec((value(), spaces()), 0..4),
        place in prop::option::of((0usize..4, value(), spaces())),
        around in spaces(),
        section in spaces(),
        trailing in any::<[bool; 2]>(),
    ) -> (String, bool) {
        let mut servers: Vec<_> = (0..).zip(others).map(|(n, (value, spaces))| {
            (format!("other{n}"), value, spaces)
        }).collect();
        let has_ours = place.is_some();
        if let Some((at, value, spaces)) = place {
            servers.insert(at.min(servers.len()), ("ours".to_owned(), value, spaces));
        }
        let servers = object(servers, trailing[0] && has_ours);
        let [front, back, more, _] = around.clone();
        let top = vec![
            ("a".to_owned(), "1".to_owned(), around),
            ("servers".to_owned(), servers, section),
        ];
        (format!("{front}{}{more}{back}", object(top, trailing[1])), has_ours)
    }
}

proptest! {
    #[test]
    fn others_entries_and_all_comments_outlive_ours((text, has_ours) in settings()) {
        match has_ours {
            true => check_removed(&text),
            false => check_added_and_removed(&text),
        }
    }
}
