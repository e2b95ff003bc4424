//! Pictures in a form that every vendor accepts. A rejected picture would make every later request
//! fail, so a line of text replaces it.

use std::borrow::Cow;

use base64::alphabet;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, Engine as _, GeneralPurpose, GeneralPurposeConfig};
use stepwell::model::{Image, counted};

/// The formats that every vendor accepts.
const TAKEN: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Formats that some vendors reject, with their file extensions.
const REFUSED: [(&str, &[&str]); 6] = [
    ("image/svg+xml", &["svg", "svgz"]),
    ("application/pdf", &["pdf"]),
    ("image/bmp", &["bmp"]),
    ("image/tiff", &["tif", "tiff"]),
    ("image/heic", &["heic", "heif", "avif"]),
    ("image/x-icon", &["ico"]),
];

/// The longest text that may be a file name where bytes should be.
const LONGEST_NAME: usize = 1024;

/// A picture in a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Picture<'a> {
    Url(&'a str),
    Base64 {
        /// The format found in the bytes, whatever format was declared.
        media_type: &'static str,
        data: Cow<'a, str>,
    },
    /// The text that replaces it.
    Told(String),
}

impl<'a> Picture<'a> {
    pub(super) fn of(image: &'a Image) -> Self {
        if image.data.starts_with("http://") || image.data.starts_with("https://") {
            return Self::at(&image.data, &image.media_type);
        }
        let embedded = image.data.strip_prefix("data:").and_then(|rest| rest.split_once(','));
        let (said, data) = match embedded {
            Some((front, data)) => (front.split(';').next().unwrap_or_default(), data),
            None => (image.media_type.as_str(), image.data.as_str()),
        };
        if data.trim().is_empty() {
            return Self::Told(left_out(&format!("{}, an empty file", kind(said))));
        }
        let Some((data, bytes)) = decoded(data) else {
            let named = embedded.is_none().then(|| file_name(data)).flatten();
            return Self::Told(left_out(named.unwrap_or(kind(said))));
        };
        match media_type(&bytes) {
            Some(media_type) if is_taken(media_type) => Self::Base64 { media_type, data },
            is => Self::Told(left_out(&described(said, is, bytes.len()))),
        }
    }

    /// A picture at a URL. Its bytes are not available, so its name and declared format decide.
    fn at(url: &'a str, said: &str) -> Self {
        let named = file_name(url);
        let ending = named.and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
        let refused = |(_, endings): &(_, &[&str])| {
            endings.iter().any(|it| ending.is_some_and(|ending| ending.eq_ignore_ascii_case(it)))
        };
        if REFUSED.iter().any(refused) || REFUSED.iter().any(|(kind, _)| *kind == said) {
            return Self::Told(left_out(named.unwrap_or(kind(said))));
        }
        Self::Url(url)
    }
}

/// A picture's bytes, and the data to send. Line breaks, missing padding and the URL alphabet occur
/// in practice, and not every vendor accepts them.
fn decoded(data: &str) -> Option<(Cow<'_, str>, Vec<u8>)> {
    if let Ok(bytes) = STANDARD.decode(data) {
        return Some((Cow::Borrowed(data), bytes));
    }
    let plain: String = data.split_ascii_whitespace().collect();
    let lenient = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let engines = [alphabet::STANDARD, alphabet::URL_SAFE];
    let mut engines = engines.iter().map(|alphabet| GeneralPurpose::new(alphabet, lenient));
    let bytes = engines.find_map(|engine| engine.decode(&plain).ok())?;
    Some((Cow::Owned(STANDARD.encode(&bytes)), bytes))
}

/// The format of these bytes, by their signature.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let is = match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'%', b'P', b'D', b'F', b'-', ..] => "application/pdf",
        [b'B', b'M', ..] => "image/bmp",
        [b'I', b'I', b'*', 0, ..] | [b'M', b'M', 0, b'*', ..] => "image/tiff",
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => "image/heic",
        [0, 0, 1, 0, ..] => "image/x-icon",
        _ => {
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(1024)]);
            return text.contains("<svg").then_some("image/svg+xml");
        }
    };
    Some(is)
}

fn is_taken(media_type: &str) -> bool {
    TAKEN.contains(&media_type)
}

/// Describes a picture that is not sent: its declared format, its real one and its size.
fn described(said: &str, is: Option<&str>, bytes: usize) -> String {
    let size = counted(bytes, "byte");
    match is {
        Some(is) if said.is_empty() || said == is => format!("{is}, {size}"),
        Some(is) => format!("{}, whose bytes are {is}, {size}", kind(said)),
        None if is_taken(said) => format!("{}, whose bytes are something else, {size}", kind(said)),
        None => format!("{}, {size}", kind(said)),
    }
}

/// The declared format in a few words.
fn kind(said: &str) -> &str {
    let plain = |c: char| c.is_ascii_graphic() && c != '[' && c != ']';
    if said.is_empty() || said.len() > 100 || !said.chars().all(plain) {
        return "of an unknown kind";
    }
    said
}

/// The file name at the end of a URL or path.
fn file_name(address: &str) -> Option<&str> {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let (_, name) = path.rsplit_once(['/', '\\']).unwrap_or(("", path));
    let is_name = address.len() <= LONGEST_NAME && name.contains('.');
    (is_name && !name.contains(char::is_control)).then_some(name)
}

fn left_out(what: &str) -> String {
    format!("[a picture that is not shown: {what}; models take png, jpeg, gif and webp]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(media_type: &str, data: &str) -> Image {
        Image { media_type: media_type.to_owned(), data: data.to_owned(), opaque: None }
    }

    fn of_bytes(media_type: &str, bytes: &[u8]) -> Image {
        image(media_type, &STANDARD.encode(bytes))
    }

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    const WEBP: &[u8] = b"RIFF\x10\0\0\0WEBPVP8 ";

    #[test]
    fn what_every_vendor_takes_goes_under_its_true_type() {
        for (said, bytes, sent) in [
            ("image/png", PNG, "image/png"),
            ("image/png", b"\xff\xd8\xff\xe0\0\x10JFIF".as_slice(), "image/jpeg"),
            ("image/jpg", b"GIF89a\x01\0\x01\0", "image/gif"),
            ("", WEBP, "image/webp"),
        ] {
            let image = of_bytes(said, bytes);
            let data = Cow::Borrowed(image.data.as_str());
            assert_eq!(Picture::of(&image), Picture::Base64 { media_type: sent, data });
        }
    }

    #[test]
    fn base64_is_sent_in_the_form_that_every_vendor_takes() {
        let plain = STANDARD.encode(WEBP);
        let broken = format!("{}\r\n{}", &plain[..8], plain[8..].trim_end_matches('='));
        for data in [broken, format!("data:image/webp;base64,{plain}")] {
            let image = image("image/webp", &data);
            let data = Cow::Owned(plain.clone());
            assert_eq!(Picture::of(&image), Picture::Base64 { media_type: "image/webp", data });
        }
    }

    #[test]
    fn what_some_vendor_refuses_is_told_of() {
        let told = |image: &Image| match Picture::of(image) {
            Picture::Told(text) => text,
            sent => panic!("{sent:?}"),
        };
        for (image, says) in [
            (of_bytes("image/svg+xml", b"<?xml?><svg/>"), "shown: image/svg+xml, 13 bytes;"),
            (of_bytes("image/png", b"%PDF-1.7"), "image/png, whose bytes are application/pdf,"),
            (of_bytes("image/bmp", b"BM1234"), "image/bmp, 6 bytes;"),
            (of_bytes("image/png", b"hello"), "image/png, whose bytes are something else,"),
            (image("image/png", ""), "image/png, an empty file;"),
            (image("image/png", "data:image/png;base64,"), "image/png, an empty file;"),
            (image("", "data:image/svg+xml;utf8,<svg/>"), "image/svg+xml;"),
            (image("image/png", "/home/me/owl.png"), "owl.png;"),
            (image("", "https://example.org/a/owl.SVG?x=1"), "owl.SVG;"),
            (image("application/pdf", "https://example.org/owl"), "application/pdf;"),
            (image("image/png", "[redacted:token]"), "image/png;"),
        ] {
            assert!(told(&image).contains(says), "{}", told(&image));
        }
    }

    #[test]
    fn an_address_goes_as_it_is() {
        let image = image("image/png", "https://example.org/owl.png");
        assert_eq!(Picture::of(&image), Picture::Url("https://example.org/owl.png"));
    }
}
