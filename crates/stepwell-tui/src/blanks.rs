//! Long runs of blank characters, counted instead of shown: they cannot push text off the screen.

/// Text in which each run of more than `most` blank characters is a mark that says how many there
/// are: `␣×3000`. Lines stay lines.
#[must_use]
pub(crate) fn counted(text: &str, most: usize) -> String {
    let mut counted = String::with_capacity(text.len());
    let mut run = String::new();
    for c in text.chars() {
        if is_blank(c) {
            run.push(c);
            continue;
        }
        put(&mut counted, &run, most);
        run.clear();
        counted.push(c);
    }
    put(&mut counted, &run, most);
    counted
}

fn put(text: &mut String, run: &str, most: usize) {
    match run.chars().count() {
        long if long > most => text.push_str(&format!(" ␣×{long} ")),
        _ => text.push_str(run),
    }
}

/// Does it take room without showing anything? Some letters of Unicode do too.
fn is_blank(c: char) -> bool {
    let filler = matches!(c, '\u{2800}' | '\u{3164}' | '\u{115f}' | '\u{1160}' | '\u{ffa0}');
    c != '\n' && (c.is_whitespace() || filler)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_of_blanks_are_counted_and_short_ones_stay() {
        let blanks = " ".repeat(3000);
        assert_eq!(counted(&format!("a;{blanks}; ls  -l"), 8), "a; ␣×3000 ; ls  -l");
        assert_eq!(counted(&format!("x{blanks}"), 8), "x ␣×3000 ");
        assert_eq!(counted("one\n\n\n\n\n\n\n\n\n\ntwo", 8), "one\n\n\n\n\n\n\n\n\n\ntwo");
    }

    #[test]
    fn blanks_that_are_no_spaces_are_counted_too() {
        for blank in ["\u{a0}", "\u{3000}", "\u{2800}", "\u{3164}"] {
            assert_eq!(counted(&format!("a{}b", blank.repeat(9)), 8), "a ␣×9 b");
        }
    }
}
