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
    /// Only a word in front of it says so that is as usual in code: it has to look like chance.
    Weak,
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
    certain(
        "gitlab-token",
        r"(gl(?:pat|ptt|dt|rt|cbt|soat|agent|ffct|imt|oas|wt)-[A-Za-z0-9_.-]{20,})",
    ),
    certain(
        "slack-token",
        concat!(
            r"(xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}",
            r"|hooks\.slack\.com/services/[A-Za-z0-9_/]{20,})",
        ),
    ),
    certain("stripe-key", r"((?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{32,})"),
    certain("anthropic-key", r"(sk-ant-[A-Za-z0-9_-]{20,})"),
    certain("openrouter-key", r"(sk-or-(?:v[0-9]+-)?[A-Za-z0-9]{32,})"),
    certain(
        "openai-key",
        r"(sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}|(?-u:\b)sk-[A-Za-z0-9]{20,}[A-Za-z0-9_-]*)",
    ),
    // Keys of other providers of models.
    certain("groq-key", r"((?-u:\b)gsk_[A-Za-z0-9]{40,})"),
    certain("xai-key", r"((?-u:\b)xai-[A-Za-z0-9]{60,})"),
    certain("perplexity-key", r"((?-u:\b)pplx-[A-Za-z0-9]{40,})"),
    certain("replicate-token", r"((?-u:\b)r8_[A-Za-z0-9]{36,})"),
    certain("huggingface-token", r"((?-u:\b)(?:hf|api_org)_[A-Za-z0-9]{34,})"),
    certain("fireworks-key", r"((?-u:\b)fw_[A-Za-z0-9]{22,})"),
    certain("google-key", r"(AIza[A-Za-z0-9_-]{35})"),
    certain("google-token", r"((?-u:\b)(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{20,})"),
    certain("npm-token", r"(npm_[A-Za-z0-9]{36})"),
    certain("pypi-token", r"(pypi-[A-Za-z0-9_-]{50,})"),
    certain("sendgrid-key", r"(SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50})"),
    // Clouds, registries and shops.
    certain("vault-token", r"((?-u:\b)hv[sbr]\.[A-Za-z0-9_-]{24,})"),
    certain("terraform-token", r"([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,})"),
    certain("digitalocean-token", r"(do[opr]_v1_[a-f0-9]{64})"),
    certain("shopify-token", r"(shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32})"),
    certain("docker-token", r"(dckr_(?:pat|oat)_[A-Za-z0-9_-]{24,})"),
    certain("age-key", r"(AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{50,})"),
    certain("azure-key", r"(?i:AccountKey|SharedAccessKey)[ \t]*=[ \t]*([A-Za-z0-9+/]{40,}={0,2})"),
    certain("azure-signature", r"[?&;]sig=([A-Za-z0-9%+/]{40,}={0,2})"),
    certain("heroku-key", r"(HRKU-[A-Za-z0-9_-]{30,})"),
    certain("fly-token", r"((?-u:\b)fm[12][a-z]?_[A-Za-z0-9+/=_-]{40,})"),
    certain("doppler-token", r"((?-u:\b)dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{30,})"),
    certain("figma-token", r"((?-u:\b)figd_[A-Za-z0-9_-]{30,})"),
    certain("nvidia-key", r"((?-u:\b)nvapi-[A-Za-z0-9_-]{40,})"),
    certain("tavily-key", r"((?-u:\b)tvly-[A-Za-z0-9-]{24,})"),
    certain(
        "discord-webhook",
        r"(discord(?:app)?\.com/api/webhooks/[0-9]{15,}/[A-Za-z0-9_-]{40,})",
    ),
    certain("databricks-token", r"((?-u:\b)dapi[a-f0-9]{32})"),
    certain("linear-key", r"(lin_(?:api|oauth)_[A-Za-z0-9]{32,})"),
    certain("notion-token", r"((?-u:\b)(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}))"),
    certain("new-relic-key", r"(NRAK-[A-Z0-9]{27})"),
    certain("postman-key", r"(PMAK-[a-f0-9]{24}-[a-f0-9]{34})"),
    certain("pulumi-token", r"((?-u:\b)pul-[a-f0-9]{40})"),
    certain("planetscale-token", r"(pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_=.-]{32,})"),
    certain("sentry-token", r"(sntry[su]_[A-Za-z0-9+/=_-]{40,})"),
    certain("rubygems-key", r"(rubygems_[a-f0-9]{48})"),
    certain("square-token", r"((?-u:\b)sq0[a-z]{3}-[A-Za-z0-9_-]{22,})"),
    certain("telegram-token", r"((?-u:\b)[0-9]{8,10}:AA[A-Za-z0-9_-]{33})"),
    certain("grafana-token", r"(gl(?:c|sa)_[A-Za-z0-9_+/=]{32,})"),
    certain("tailscale-key", r"(tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{16,})"),
    certain("supabase-key", r"((?-u:\b)sb[ps]_[A-Za-z0-9_]{36,}|sb_secret_[A-Za-z0-9_-]{20,})"),
    certain("atlassian-token", r"(ATATT3[A-Za-z0-9_=-]{100,}|ATCTT3[A-Za-z0-9_=-]{100,})"),
    certain("cargo-token", r"((?-u:\b)cio[A-Za-z0-9]{32})"),
    certain("twilio-key", r"((?-u:\b)SK[0-9a-fA-F]{32})"),
    certain("jwt", r"(eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})"),
    certain(
        "authorization",
        concat!(
            r#"(?i:authorization)\\?["']?[ \t]*[:=][ \t]*\\?["']?"#,
            r"(?i:bearer|basic|token)[ \t]+([A-Za-z0-9+/=._~-]{8,})",
        ),
    ),
    // The same without its header, and what browsers send in its place.
    Rule {
        name: "authorization",
        pattern: concat!(
            r"(?-u:\b)(?i:bearer)[ \t]+([A-Za-z0-9+/=._~-]{16,})",
            r#"|(?i:cookie)\\?["']?[ \t]*:[ \t]*\\?["']?([^\s"'\\=;,:(){}<>]{1,100}=[^\r\n"'\\(){}<>]{12,})"#,
        ),
        values: &[Value::Weak, Value::Bare],
    },
    // A user's name and password for a program that fetches.
    certain(
        "command-password",
        concat!(
            r"(?-u:\b)(?:curl|wget|http|https|xh)(?-u:\b)[^\n|;&]*?[ \t]",
            r#"(?:-u[ \t]*|--user[ \t=]|--proxy-user[ \t=]|-a[ \t]+)\\?["']?"#,
            r#"[^\s:"'$<>\\]{1,100}:([^\s"'$<>\\]{3,})"#,
        ),
    ),
    // The same behind other flags: `curl -sSu`.
    certain(
        "command-password",
        concat!(
            r"(?-u:\b)curl(?-u:\b)[^\n|;&]*?[ \t]-[A-Za-z]{1,12}u[ \t]*",
            r#"\\?["']?[^\s:"'$<>\\]{1,100}:([^\s"'$<>\\]{3,})"#,
        ),
    ),
    Rule {
        name: "command-password",
        pattern: concat!(
            r#"[ \t]--(?:http-|ftp-|proxy-)?password[ \t=]\\?["']?([^\s"'$<>\\-][^\s"'$<>\\]{7,})"#,
            // A token or a key, as `--token VALUE`.
            r"|[ \t]--(?:[a-z]+-)?(?:token|api-?key|secret|secret-key|access-key)[ \t=]",
            r#"\\?["']?([^\s"'$<>\\-][^\s"'$<>\\]{7,})"#,
            // Logging in to a registry.
            r"|(?-u:\b)(?:docker|podman|helm|nerdctl|buildah|skopeo|az|oc)(?-u:\b)[^\n|;&]*?",
            r#"[ \t]login[ \t][^\n|;&]*?-p[ \t=]?\\?["']?([^\s"'$<>\\-][^\s"'$<>\\]{5,})"#,
            // Clients of databases, and of another machine's shell.
            r"|(?-u:\b)(?:mysql(?:dump|admin)?|mariadb(?:-dump)?)[ \t](?:[^\n|;&]*?[ \t])?-p",
            r#"\\?["']?([^\s"'$<>\\-][^\s"'$<>\\]{5,})"#,
            r"|(?-u:\b)(?:sshpass[ \t]+-p|redis-cli[ \t](?:[^\n|;&]*?[ \t])?-a",
            r"|mongo(?:sh|dump)?[ \t](?:[^\n|;&]*?[ \t])?-p)[ \t]*",
            r#"\\?["']?([^\s"'$<>\\-][^\s"'$<>\\]{5,})"#,
        ),
        values: &[Value::Bare, Value::Bare, Value::Bare, Value::Bare, Value::Bare],
    },
    certain("url-password", r#"://[^\s/:@\[\]"'<>]{0,100}:([^\s/@\[\]"'<>]{3,})@"#),
    // A token as a user's name, or among what an address asks for.
    Rule {
        name: "url-token",
        pattern: concat!(
            r"://([A-Za-z0-9_.~-]{20,})@",
            r"|[?&](?i:(?:access|auth|refresh|id)_?token|api_?key|client_?secret|secret|password|passwd)",
            r"=([A-Za-z0-9_.~%+/-]{8,}={0,2})",
            r"|[?&](?i:token|key|signature|sig)=([A-Za-z0-9_.~%+/-]{12,}={0,2})",
        ),
        values: &[Value::Weak, Value::Bare, Value::Weak],
    },
    // What `.netrc` says, on one line or on several.
    certain(
        "netrc-password",
        r"(?-u:\b)login[ \t\r\n]+[^\s]{1,100}[ \t\r\n]+password[ \t]+([^\s]{4,})",
    ),
    Rule {
        name: "assigned-secret",
        pattern: concat!(
            r"(?:(?i:password|passwd|passphrase|[a-z0-9]_pass|[a-z0-9]_pwd|secret|secret_key_base|api[_-]?key|secret[_-]?key|access[_-]?key",
            r"|private[_-]?key|encryption[_-]?key|account[_-]?key|signing[_-]?key",
            r"|(?:access|auth|refresh|bearer|api|bot|session|id|secret)[_-]?token)",
            // The name of a variable of the environment.
            r"|[A-Z0-9]_(?:TOKEN|CREDENTIAL))",
            r#"\\?["']?[ \t]*(?:=>|:=|=|:)[ \t]*"#,
            r#"(?:\\?["'`]([^\s"'`\\]{8,})|([A-Za-z0-9+/_.~!@#$%^&*-]{8,}={0,2}))"#,
        ),
        values: &[Value::Quoted, Value::Bare],
    },
    // What `.npmrc` and connection strings say.
    Rule {
        name: "assigned-secret",
        pattern: r#"(?-u:\b)(?:_auth[ \t]*=[ \t]*|(?i:pwd)=)\\?["']?([A-Za-z0-9+/_.~!@#$%^&*-]{8,}={0,2})"#,
        values: &[Value::Bare],
    },
    // A variable of a container, of fish and of Windows: `ENV NPM_TOKEN VALUE`,
    // `set -gx NPM_TOKEN VALUE`, `setx NPM_TOKEN VALUE`.
    Rule {
        name: "assigned-secret",
        pattern: concat!(
            r"(?-u:\b)(?:ENV|set(?:[ \t]+-[a-zA-Z-]+)+|(?i:setx))[ \t]+(?:[A-Z0-9]+_)*",
            r"(?:TOKEN|PASSWORD|PASSWD|PASS|PWD|SECRET|CREDENTIAL|KEY|PAT)[ \t]+",
            r#"\\?["']?([A-Za-z0-9+/_.~!@#%^&*-]{8,}={0,2})"#,
        ),
        values: &[Value::Bare],
    },
    // What Maven's settings say.
    Rule {
        name: "assigned-secret",
        pattern: r"<(?i:password|passphrase|token|secret|api-?key|private-?key)>([A-Za-z0-9+/_.~!@#$%^*=-]{8,})",
        values: &[Value::Quoted],
    },
    // Variables whose names say it less surely.
    Rule {
        name: "assigned-secret",
        pattern: concat!(
            r#"[A-Z0-9]_(?:KEY|PAT)(?:=|:| =|\\?["'][ \t]*[:=])[ \t]*"#,
            r#"(?:\\?["'`]([^\s"'`\\]{12,})|([A-Za-z0-9+/_.~-]{12,}={0,2}))"#,
        ),
        values: &[Value::Weak, Value::Weak],
    },
    // A word that tests print, too, but not so.
    Rule {
        name: "assigned-secret",
        pattern: r#"(?-u:\b)PASS=(?:\\?["']([^\s"'`\\]{8,})|([A-Za-z0-9+/_.~!@#$%^&*-]{8,}={0,2}))"#,
        values: &[Value::Quoted, Value::Bare],
    },
    Rule {
        name: "assigned-secret",
        pattern: concat!(
            r#"(?i:token|credential)\\?["']?[ \t]*(?:=>|:=|=|:)[ \t]*"#,
            r#"(?:\\?["'`]([^\s"'`\\]{12,})|([A-Za-z0-9+/_.~-]{12,}={0,2}))"#,
        ),
        values: &[Value::Weak, Value::Weak],
    },
];

/// Is a value that a rule matched a secret, or does it name where one comes from?
pub(super) fn is_secret(value: &str, kind: Value, around: Around<'_>) -> bool {
    let after = around.after;
    match kind {
        Value::Placeholder | Value::Certain => true,
        Value::Quoted => {
            let letters = value.chars().all(char::is_alphabetic);
            // A label of a form is one short word: "Password", "Passwort".
            let word = letters && value.chars().count() < 12;
            !is_stand_in(value) && (!word || around.is_plain_password(value))
        }
        // Without quotes, code has to be told from values: a call, or a type.
        Value::Bare => {
            let value_like = is_mixed(value) || around.is_plain_password(value);
            value_like && !is_stand_in(value) && !after.starts_with(['(', '[', '<'])
        }
        Value::Weak => {
            let names = !after.starts_with(['(', '[', '<', ':', '{']) && !is_made_up(value);
            let chance = is_mixed(value) && !is_words(value);
            names && !is_stand_in(value) && (chance || around.is_plain_password(value))
        }
    }
}

/// The text around a value.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) before: &'a str,
    pub(super) after: &'a str,
}

impl Around<'_> {
    /// Is the value letters alone, and assigned in a form that only shells and files of variables
    /// have: `DB_PASSWORD=correcthorse`, or `password=correcthorse` as a line of its own? Code has
    /// room around the sign, and `password: word` is a type, a label or prose.
    fn is_plain_password(self, value: &str) -> bool {
        let letters = value.len() >= 8 && value.bytes().all(|byte| byte.is_ascii_alphabetic());
        let Some(before) = self.before.trim_end_matches(['"', '\'']).strip_suffix('=') else {
            return false;
        };
        if !letters || is_made_up(value) || names_itself(value) {
            return false;
        }
        let named = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let front = before.trim_end_matches(named);
        let name = &before[front.len()..];
        let shouted = !name.is_empty() && !name.bytes().any(|byte| byte.is_ascii_lowercase());
        let ends = self.after.is_empty() || self.after.starts_with(['\n', '\r']);
        let line = front.rsplit('\n').next().unwrap_or(front).trim();
        let alone = ends && (line.is_empty() || line == "export");
        let code = self.after.starts_with(['(', '[', '<', ':', '{', '=']);
        !code && (shouted || alone)
    }
}

/// Does it say what it is, as names in code and examples do: `userPassword`?
fn names_itself(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    ["password", "passwd", "secret", "token"].iter().any(|word| lower.contains(word))
}

fn is_mixed(value: &str) -> bool {
    let has = |is: fn(&u8) -> bool| value.as_bytes().iter().any(is);
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}

/// Is it made of words, as names in code are? Chance changes from small letters to capitals, and
/// to digits, every other character.
fn is_words(value: &str) -> bool {
    /// The shortest that words are on average; what chance makes is half as long.
    const WORD: usize = 3;
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let (mut words, mut letters, mut before) = (0, 0, b'.');
    for byte in value.bytes() {
        let begins = byte.is_ascii_alphabetic()
            && (!before.is_ascii_alphabetic()
                || (before.is_ascii_lowercase() && byte.is_ascii_uppercase()));
        words += usize::from(begins);
        letters += usize::from(byte.is_ascii_alphabetic());
        before = byte;
    }
    letters >= WORD * words.max(1) && digits * 5 <= value.len() && reads_well(value)
}

/// Do its letters follow each other as they do in words? Of those in our own documentation and code
/// 96 of 100 pairs are here, of chance every third.
fn reads_well(value: &str) -> bool {
    let is_pair = |pair: &&[u8]| match pair {
        [first, second] => {
            let begins_word = first.is_ascii_lowercase() && second.is_ascii_uppercase();
            first.is_ascii_alphabetic() && second.is_ascii_alphabetic() && !begins_word
        }
        _ => false,
    };
    let is_known = |pair: &&[u8]| {
        let first = usize::from(pair[0].to_ascii_lowercase() - b'a');
        FOLLOWERS[first].as_bytes().contains(&pair[1].to_ascii_lowercase())
    };
    let pairs = value.as_bytes().windows(2).filter(is_pair);
    pairs.clone().filter(is_known).count() * 4 >= pairs.count() * 3
}

/// What follows each letter of the alphabet in words.
const FOLLOWERS: [&str; 26] = [
    "bcdgiklmnprstuy",
    "aelouy",
    "aehklort",
    "aeiorsy",
    "acdefglmnpqrstvwxy",
    "ailnort",
    "aeiors",
    "aeio",
    "acdefglmnoprstvz",
    "s",
    "eis",
    "adefilostu",
    "aeimopu",
    "acdefgiknostuw",
    "bcdfiklmnoprstuvw",
    "aehiloprtuw",
    "u",
    "acdegikmnorstuy",
    "acehikopstuw",
    "acdehiorstuy",
    "bceglmnprst",
    "aei",
    "aehinors",
    "t",
    "st",
    "e",
];

/// Is it what documentation puts in a secret's place?
fn is_made_up(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let words =
        ["your", "example", "placeholder", "changeme", "dummy", "sample", "xxxx", "1234567"];
    words.iter().any(|word| lower.contains(word))
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
    // The name of a variable or a constant: DB_PASSWORD.
    let upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let name = value.contains('_') && value.bytes().all(upper);
    variable
        || name
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
