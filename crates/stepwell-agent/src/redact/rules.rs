//! The rules: what secrets look like.
//!
//! A rule is a regular expression with a group around the secret. It asks nothing of what
//! follows the secret, so that a text can be read from left to right; and where it needs
//! words in front of one, they hold no separator that a value could hold.

/// A kind of secret.
pub(super) struct Rule {
    /// Its name, which stands in the secret's place.
    pub(super) name: &'static str,
    pub(super) pattern: &'static str,
    /// What the pattern's groups hold, in order; one of them is the secret.
    pub(super) values: &'static [Value],
}

/// How sure it is that a group holds a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// It is what an earlier redaction left.
    Placeholder,
    /// Its shape says so.
    Certain,
    /// Only the words in front of it say so, and it stands in quotes.
    Quoted,
    /// Only the words in front of it say so.
    Bare,
}

const fn certain(name: &'static str, pattern: &'static str) -> Rule {
    Rule { name, pattern, values: &[Value::Certain] }
}

/// In order: of two that match at the same place the first one names the secret.
pub(super) const RULES: &[Rule] = &[
    certain(
        "private-key",
        concat!(
            r"(-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-{1,4}[^-])*?",
            r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----",
            // Cut off at its end, and at its beginning.
            r"|-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----",
            r"(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{20,})*",
            r"|(?:[A-Za-z0-9+/]+={0,2}(?:\r?\n|\\n))+",
            r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)",
        ),
    ),
    certain("aws-access-key-id", r"((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})"),
    certain(
        "aws-secret-key",
        concat!(
            r#"(?i:secret_?access_?key|aws_?secret(?:_?key)?)\\?["']?[ \t]*(?:=>|:=|=|:)[ \t]*"#,
            r#"\\?["']?([A-Za-z0-9/+=]{40,})"#,
        ),
    ),
    certain("github-token", r"(gh[opusr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})"),
    certain("gitlab-token", r"(gl(?:pat|ptt|dt|rt|cbt|soat)-[A-Za-z0-9_-]{20,})"),
    certain(
        "slack-token",
        concat!(
            r"(xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}",
            r"|hooks\.slack\.com/services/[A-Za-z0-9_/]{20,})",
        ),
    ),
    certain("stripe-key", r"((?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{32,})"),
    certain("anthropic-key", r"(sk-ant-[A-Za-z0-9_-]{20,})"),
    certain(
        "openai-key",
        r"(sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}|(?-u:\b)sk-[A-Za-z0-9]{20,}[A-Za-z0-9_-]*)",
    ),
    certain("google-key", r"(AIza[A-Za-z0-9_-]{35})"),
    certain("npm-token", r"(npm_[A-Za-z0-9]{36})"),
    certain("pypi-token", r"(pypi-[A-Za-z0-9_-]{50,})"),
    certain("sendgrid-key", r"(SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50})"),
    certain("twilio-key", r"((?-u:\b)SK[0-9a-fA-F]{32})"),
    certain("jwt", r"(eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})"),
    certain(
        "authorization",
        concat!(
            r#"(?i:authorization)\\?["']?[ \t]*[:=][ \t]*\\?["']?"#,
            r"(?i:bearer|basic|token)[ \t]+([A-Za-z0-9+/=._~-]{8,})",
        ),
    ),
    certain("url-password", r#"://[^\s/:@\[\]"'<>]{0,100}:([^\s/@\[\]"'<>]{3,})@"#),
    Rule {
        name: "assigned-secret",
        pattern: concat!(
            r"(?i:password|passwd|passphrase|secret|api[_-]?key|secret[_-]?key|access[_-]?key",
            r"|private[_-]?key|encryption[_-]?key",
            r"|(?:access|auth|refresh|bearer|api|bot|session|id|secret)[_-]?token)",
            r#"\\?["']?[ \t]*(?:=>|:=|=|:)[ \t]*"#,
            r#"(?:\\?["'`]([^\s"'`\\]{8,})|([A-Za-z0-9+/_.~!@#$%^&*-]{8,}={0,2}))"#,
        ),
        values: &[Value::Quoted, Value::Bare],
    },
];

/// Is a value that a rule matched a secret, or does it name where one comes from?
pub(super) fn is_secret(value: &str, kind: Value, after: &str) -> bool {
    match kind {
        Value::Placeholder | Value::Certain => true,
        Value::Quoted => {
            let letters = value.chars().all(char::is_alphabetic);
            // A label of a form is one short word: "Password", "Passwort".
            !is_stand_in(value) && (!letters || value.chars().count() >= 12)
        }
        Value::Bare => {
            let (mut digit, mut letter) = (false, false);
            value.bytes().for_each(|byte| {
                digit |= byte.is_ascii_digit();
                letter |= byte.is_ascii_alphabetic();
            });
            // Without quotes, code has to be told from values: a call, or a type.
            digit && letter && !is_stand_in(value) && !after.starts_with(['(', '[', '<'])
        }
    }
}

/// Does it stand for a value that is elsewhere: a variable, a template, a file, or dots?
fn is_stand_in(value: &str) -> bool {
    let mut chars = value.chars();
    let (first, second) = (chars.next(), chars.next());
    let variable = first == Some('$')
        && second.is_some_and(|second| second.is_ascii_alphabetic() || "{(_".contains(second));
    let file = ["/", "./", "../", "~/"].iter().any(|prefix| value.starts_with(prefix));
    let template = ["[redacted:", "${", "{{", "<%", "%(", "process.env", "os.environ", "getenv"];
    let mask = first.is_some_and(|first| value.chars().all(|other| other == first));
    variable
        || file
        || mask
        || (value.starts_with('<') && value.ends_with('>'))
        || template.iter().any(|mark| value.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_as_many_groups_as_it_says() {
        for rule in RULES {
            let pattern = regex::Regex::new(rule.pattern).unwrap();
            assert_eq!(pattern.captures_len() - 1, rule.values.len(), "{}", rule.name);
        }
    }
}
