//! Finding names by some of their letters.

/// How well a name fits what was typed; higher is better, absent it does not. Every letter must
/// occur, in this order. Letters in a row, and at the beginning of a part, count more; shorter names
/// win.
#[must_use]
pub(crate) fn rate(name: &str, typed: &str) -> Option<i32> {
    let mut points = 0;
    let mut before: Option<char> = None;
    let mut in_row = 0;
    let mut wanted = typed.chars().flat_map(char::to_lowercase).peekable();
    let mut length = 0;
    for c in name.chars() {
        length += 1;
        let fits = wanted.peek().is_some_and(|want| c.to_lowercase().eq(std::iter::once(*want)));
        if fits {
            wanted.next();
            in_row += 1;
            points += 4 + 4 * in_row.min(6);
            let begins = before.is_none_or(|before| !before.is_alphanumeric())
                || (c.is_uppercase() && before.is_some_and(char::is_lowercase));
            if begins {
                points += 12;
            }
        } else {
            in_row = 0;
        }
        before = Some(c);
    }
    wanted.peek().is_none().then_some(points * 4 - length)
}

/// The names that fit, the best first, at most so many.
pub(crate) fn best<T>(
    all: impl IntoIterator<Item = T>,
    typed: &str,
    most: usize,
    name: impl Fn(&T) -> &str,
) -> Vec<T> {
    let rated = all.into_iter().filter_map(|one| Some((rate(name(&one), typed)?, one)));
    let mut rated: Vec<_> = rated.collect();
    // Stable: of two that fit as well, the first stays first.
    rated.sort_by_key(|(points, _)| std::cmp::Reverse(*points));
    rated.truncate(most);
    rated.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_in_order_are_found_and_the_nearest_comes_first() {
        let files = ["src/main.rs", "src/domain.rs", "README.md", "tests/main_menu.rs"];
        assert_eq!(
            best(files, "main", 9, |it| it),
            ["src/main.rs", "tests/main_menu.rs", "src/domain.rs"]
        );
        assert_eq!(best(files, "readm", 9, |it| it), ["README.md"]);
        assert_eq!(best(files, "", 2, |it| it).len(), 2);
        assert_eq!(rate("abc", "cb"), None);
    }
}
