use std::fmt::Display;

/// A number with its noun, in the plural unless it is one: `1 byte`, `2 bytes`.
#[must_use]
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(n: N, one: &str) -> String {
    let plural = if n == N::from(1) { "" } else { "s" };
    format!("{n} {one}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        let all = [0_u64, 1, 2, 11].map(|n| counted(n, "byte"));
        assert_eq!(all, ["0 bytes", "1 byte", "2 bytes", "11 bytes"]);
    }
}
