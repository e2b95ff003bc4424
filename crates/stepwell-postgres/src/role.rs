//! The script that lets a role use one namespace and nothing else.

use stepwell::Result;

use crate::address::checked_namespace;

/// The script, in SQL, to be run by the owner of the schema.
pub fn script(namespace: &str, role: &str) -> Result<String> {
    let namespace = checked_namespace(namespace)?;
    let places = [
        (":namespace", format!("'{namespace}'")),
        (":\"role\"", format!("\"{}\"", role.replace('"', "\"\""))),
        (":role", format!("'{}'", role.replace('\'', "''"))),
    ];
    Ok(filled(include_str!("sql/role.sql"), &places))
}

/// A text with its places filled in. What was filled in is not looked at again: a name may
/// hold what looks like a place.
fn filled(text: &str, places: &[(&str, String)]) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        done.push_str(&rest[..at]);
        rest = &rest[at..];
        let place = places.iter().find(|(place, _)| rest.starts_with(place));
        let (name, value) = place.map_or((":", ":"), |(name, value)| (*name, value.as_str()));
        done.push_str(value);
        rest = &rest[name.len()..];
    }
    done + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_the_script() {
        let script = script("team-a", "o'b\"c").unwrap();
        assert!(script.contains("VALUES ('team-a')") && script.contains("'o''b\"c'"), "{script}");
        assert!(script.contains("TO \"o'b\"\"c\";"), "{script}");
        assert!(super::script("a'; DROP", "x").is_err());
    }

    #[test]
    fn a_name_that_looks_like_a_place_stays_a_name() {
        for role in [
            ":role\"; COMMIT; CREATE TABLE public.pwned(); --",
            ":role",
            ":namespace",
            ":\"role\"",
            "'; DROP TABLE x; --",
            "x\"; DROP TABLE x; --",
        ] {
            let script = script("team-a", role).unwrap();
            let text = format!("'{}'", role.replace('\'', "''"));
            let name = format!("\"{}\"", role.replace('"', "\"\""));
            // Without its names, whole, it is the script of any other role.
            let plain = super::script("team-a", "x").unwrap();
            let (names, texts) = (plain.matches("\"x\"").count(), plain.matches("'x'").count());
            assert_eq!(script.replace(&name, "\"x\"").replace(&text, "'x'"), plain, "{role}");
            assert_eq!(script.matches(&name).count(), names, "{role}");
            assert_eq!(script.matches(&text).count(), texts, "{role}");
        }
    }
}
