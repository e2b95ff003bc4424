//! The pictures that vendors accept: four formats, each with the right media type.

/// The first bytes of each format, in base64.
const KINDS: [(&str, &str); 4] = [
    ("image/png", "iVBORw0KGg"),
    ("image/jpeg", "/9j/"),
    ("image/gif", "R0lGOD"),
    ("image/webp", "UklGR"),
];

/// Rejects other formats and wrong media types.
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
