//! Which pictures the vendors take: four kinds, each under its own name.

/// How the bytes of each kind begin, in base64.
const KINDS: [(&str, &str); 4] = [
    ("image/png", "iVBORw0KGg"),
    ("image/jpeg", "/9j/"),
    ("image/gif", "R0lGOD"),
    ("image/webp", "UklGR"),
];

/// Refuses what is none of them, or bears the name of another.
pub(crate) fn check(media_type: &str, data: &str) -> Result<(), String> {
    let Some((_, begins)) = KINDS.iter().find(|(kind, _)| *kind == media_type) else {
        return Err("Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'".into());
    };
    match data.starts_with(begins) {
        true => Ok(()),
        false => {
            Err(format!("The image was specified using the {media_type} media type, but is none"))
        }
    }
}
