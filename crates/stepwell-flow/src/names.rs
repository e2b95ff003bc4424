//! Names in error messages: the nearest one, and lists of those expected.

pub use stepwell::sessions::nearest;

/// A bounded, comma-separated list of names for an error message.
#[must_use]
pub fn listed<'a>(known: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 24;
    let names: Vec<_> = known.into_iter().map(|name| format!("`{name}`")).collect();
    match names.len() {
        0 => "nothing".to_owned(),
        n if n > MOST => format!("{} and {} more", names[..MOST].join(", "), n - MOST),
        _ => names.join(", "),
    }
}
