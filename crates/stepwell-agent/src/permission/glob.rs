//! Patterns in which `*` matches anything.

use super::shell::is_unknown;

/// Does the text match the pattern?
pub(super) fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Could the text match the pattern, if its unknown parts may be anything?
pub(super) fn may_be_like(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    // `reached[n]`: the first n characters of the pattern can match the text read so far.
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    let pass_stars = |reached: &mut Vec<bool>| {
        for (n, part) in pattern.iter().enumerate() {
            reached[n + 1] |= reached[n] && *part == '*';
        }
    };
    pass_stars(&mut reached);
    for character in text.chars() {
        let mut next = vec![false; reached.len()];
        match is_unknown(character) {
            // An unknown part matches nothing, or everything that the pattern still needs.
            true => {
                let first = reached.iter().position(|it| *it).unwrap_or(reached.len());
                next[first.min(pattern.len())..].fill(first < reached.len());
            }
            false => {
                for (n, part) in pattern.iter().enumerate() {
                    next[n] |= reached[n] && *part == '*';
                    next[n + 1] |= reached[n] && *part == character;
                }
            }
        }
        pass_stars(&mut next);
        reached = next;
    }
    reached[pattern.len()]
}
