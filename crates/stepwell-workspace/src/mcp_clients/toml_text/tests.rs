use serde_json::json;

use super::*;

fn taken_out(text: &str) -> String {
    let document = TomlText::read(text).unwrap();
    super::super::without(text, &document.removal("servers", "ours").unwrap())
}

#[test]
fn only_the_lines_of_an_entry_are_taken_out() {
    for (text, rest) in [
        ("[servers.ours]\na = 1\n  [other]\n  a = 1\n", "  [other]\n  a = 1\n"),
        (
            "[servers.ours]\na = 1\n\n# on the other\n[servers.other]\nb = 2",
            "\n# on the other\n[servers.other]\nb = 2",
        ),
        (
            "# [servers.ours]\n[servers.\"ours\"]\na = [\n  1,\n]\n# end\n",
            "# [servers.ours]\n# end\n",
        ),
        (
            "x = 1\n\n[servers.ours.env]\nA = \"b\"\n\n[other]\n\n[servers.ours]\na = 1 # ours\n",
            "x = 1\n\n[other]\n\n",
        ),
        ("[servers]\nours = { a = 1 }\nother = 2\n", "[servers]\nother = 2\n"),
        (
            "[servers]\nours.a = 1\n# mine\nours.b = 2\nother = 2\n",
            "[servers]\n# mine\nother = 2\n",
        ),
        ("servers.ours.a = 1\r\nservers.other = 1\r\n", "servers.other = 1\r\n"),
        ("[[servers.ours.list]]\na = 1\n[[servers.ours.list]]\na = 2\n[x]\n", "[x]\n"),
        ("a = 1\n\n[servers.ours]\nb = 1\n", "a = 1\n"),
    ] {
        assert_eq!(taken_out(text), rest, "{text}");
    }
    let inline = TomlText::read("servers = { ours = { a = 1 }, other = 2 }\n").unwrap();
    assert!(inline.removal("servers", "ours").unwrap_err().contains("by hand"));
}

#[test]
fn all_that_an_entry_says_is_read() {
    let text = "[servers.ours]\na = 'x'\nb = [1, true]\nc = 1.5\nd = 2026-01-01\n[servers.ours.env]\nE = 'f'\n";
    let document = TomlText::read(text).unwrap();
    let expected = json!({"a": "x", "b": [1, true], "c": {"float": "1.5"},
                          "d": {"time": "2026-01-01"}, "env": {"E": "f"}});
    assert_eq!(document.entry("servers", "ours"), Some(expected));
    assert_eq!(document.entry("servers", "other"), None);
}
