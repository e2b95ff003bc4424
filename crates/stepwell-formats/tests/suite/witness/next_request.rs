//! The rule for every importer: an import shows what the agent itself sends its model next.

/// Fails unless the request shows the conversation that the import shows, and the new prompt
/// behind it. `is_added` tells the lines that the program adds by itself; these do not count.
///
/// Lines have the form of [`view`](super::sessions::view). A program may end a text with line
/// breaks where it joins several, so these do not count.
pub(super) fn assert_sent_next(
    shown: &[String],
    prompt: &str,
    sent: &[String],
    is_added: impl Fn(&str) -> bool,
) {
    let counted = |lines: &[String]| -> Vec<String> {
        let plain = lines.iter().map(|line| line.trim_end().to_owned());
        plain.filter(|line| !is_added(line)).collect()
    };
    let mut expected = counted(shown);
    expected.push(format!("user: {prompt}"));
    let sent = counted(sent);
    assert_eq!(expected, sent, "the import (left) is not what the program sends (right)");
}
