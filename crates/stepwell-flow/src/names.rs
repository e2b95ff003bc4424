//! Names in error messages: the nearest one, and lists of those expected.

/// The known name that was probably meant, if one is close enough.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A long text is not a mistyped name, and comparing it would be slow.
    if name.len() > 64 {
        return None;
    }
    let likeness = |one: &str| strsim::jaro_winkler(&name.to_lowercase(), &one.to_lowercase());
    let rated = known.into_iter().map(|one| (one, likeness(one)));
    rated.filter(|(_, rate)| *rate > 0.8).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(one, _)| one)
}

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
