//! The script that lets a role use one namespace and nothing else.

use stepwell::Result;

use crate::address::checked_namespace;

/// The script, in SQL, to be run by the owner of the schema.
pub fn script(namespace: &str, role: &str) -> Result<String> {
    let namespace = checked_namespace(namespace)?;
    let (text, name) = (format!("'{}'", role.replace('\'', "''")), role.replace('"', "\"\""));
    let script = include_str!("sql/role.sql");
    Ok(script
        .replace(":namespace", &format!("'{namespace}'"))
        .replace(":\"role\"", &format!("\"{name}\""))
        .replace(":role", &text))
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
}
