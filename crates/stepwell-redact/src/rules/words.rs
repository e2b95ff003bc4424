//! Rules for secrets that are recognised by the words in front of them.

use super::{Before, Reach, Rule, Value, certain, word};

/// The text between a name and its value: the name's closing quote, and a sign.
macro_rules! assigned {
    () => {
        r#"(?:\\{0,3}["'])?[ \t]*(?:=>|:=|=|:)[ \t]*"#
    };
}

/// A quote in front of a value, escaped if the text is embedded.
macro_rules! quote {
    () => {
        r#"\\{0,3}["'`]"#
    };
}

/// The same, for values that may be unquoted.
macro_rules! maybe_quote {
    () => {
        r#"(?:\\{0,3}["'])?"#
    };
}

/// An argument of a command. One with a leading dash is a flag.
macro_rules! argument {
    () => {
        r#"([^\s"'$<>\\-][^\s"'$<>\\]{5,})"#
    };
}

/// Options of `htpasswd`, one of which takes a number.
macro_rules! htpasswd_flags {
    () => {
        r"(?:[ \t]+(?:-[A-Za-z]+|[0-9]{1,2}))*"
    };
}

/// A word of a command that is not an option.
macro_rules! operand {
    () => {
        r#"[ \t]+(?:"[^"\n]*"|'[^'\n]*'|[^\s"'-][^\s]*)"#
    };
}

/// Names of secret values in files of any kind.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "api_key",
    "api-key",
    "apikey",
    "access_key",
    "access-key",
    "accesskey",
    "private_key",
    "private-key",
    "privatekey",
    "encryption_key",
    "encryption-key",
    "encryptionkey",
    "account_key",
    "account-key",
    "accountkey",
    "signing_key",
    "signing-key",
    "signingkey",
    "access_token",
    "access-token",
    "accesstoken",
    "auth_token",
    "auth-token",
    "authtoken",
    "refresh_token",
    "refresh-token",
    "refreshtoken",
    "bearer_token",
    "bearer-token",
    "bearertoken",
    "api_token",
    "api-token",
    "apitoken",
    "bot_token",
    "bot-token",
    "bottoken",
    "session_token",
    "session-token",
    "sessiontoken",
    "id_token",
    "id-token",
    "idtoken",
];

pub(super) const RULES: &[Rule] = &[
    certain(
        "aws-secret-key",
        &["secret_access", "secretaccess", "aws_secret", "awssecret"],
        concat!(
            r"(?i-u:secret_?access_?key|aws_?secret(?:_?(?:access_?)?key)?)",
            assigned!(),
            maybe_quote!(),
            r"([A-Za-z0-9/+=]{40,})",
        ),
    ),
    certain(
        "azure-key",
        &["accountkey", "sharedaccesskey"],
        r"(?i-u:AccountKey|SharedAccessKey)[ \t]*=[ \t]*([A-Za-z0-9+/]{40,}={0,2})",
    ),
    Rule {
        before: Before::Parameter,
        ..certain("azure-signature", &["sig="], r"sig=([A-Za-z0-9%+/]{40,}={0,2})")
    },
    certain(
        "authorization",
        &["authorization"],
        concat!(
            r"(?i-u:authorization)",
            r#"(?:\\{0,3}["'])?[ \t]*[:=][ \t]*"#,
            maybe_quote!(),
            r"(?i-u:bearer|basic|token)[ \t]+([A-Za-z0-9+/=._~-]{8,})",
        ),
    ),
    word("okta-token", &["ssws"], r"SSWS(?:[ \t+]|%20|\\t)+([A-Za-z0-9_-]{30,})"),
    // The same without its header, and what browsers send instead.
    Rule {
        values: &[Value::Weak],
        ..word("authorization", &["bearer"], r"(?i-u:bearer)[ \t]+([A-Za-z0-9+/=._~-]{16,})")
    },
    Rule {
        values: &[Value::Bare],
        ..certain(
            "authorization",
            &["cookie"],
            concat!(
                r#"(?i-u:cookie)(?:\\{0,3}["'])?[ \t]*:[ \t]*"#,
                maybe_quote!(),
                r#"([^\s"'\\=;,:(){}<>]{1,100}=[^\r\n"'\\(){}<>]{12,})"#,
            ),
        )
    },
    // A user name and password for a download program.
    Rule {
        reach: Reach::Command,
        ..word(
            "command-password",
            &["curl", "wget", "http ", "http\t", "https ", "https\t", "xh ", "xh\t"],
            concat!(
                r"(?:(?:curl|wget)(?:\.exe)?|https?|xh)(?:[ \t][^\n|;&]*?)?[ \t]",
                r"(?:-u[ \t]*|--user[ \t=]|--proxy-user[ \t=]|-a[ \t]+)",
                maybe_quote!(),
                r#"[^\s:"'$<>\\]{1,100}:([^\s"'$<>\\]{3,})"#,
            ),
        )
    },
    // The same after other flags: `curl -sSu`.
    Rule {
        reach: Reach::Command,
        ..word(
            "command-password",
            &["curl"],
            concat!(
                r"curl(?:\.exe)?(?:[ \t][^\n|;&]*?)?[ \t]-[A-Za-z]{1,12}u[ \t]*",
                maybe_quote!(),
                r#"[^\s:"'$<>\\]{1,100}:([^\s"'$<>\\]{3,})"#,
            ),
        )
    },
    Rule {
        values: &[Value::Bare, Value::Bare],
        ..certain(
            "command-password",
            &[" --", "\t--"],
            concat!(
                r"[ \t]--(?:http-|ftp-|proxy-)?password[ \t=]",
                maybe_quote!(),
                r#"([^\s"'$<>\\-][^\s"'$<>\\]{7,})"#,
                // A token or key such as `--token VALUE`.
                r"|[ \t]--(?:[a-z]+-)?(?:token|api-?key|secret|secret-key|access-key)[ \t=]",
                maybe_quote!(),
                r#"([^\s"'$<>\\-][^\s"'$<>\\]{7,})"#,
            ),
        )
    },
    // Registry logins.
    Rule {
        reach: Reach::Command,
        values: &[Value::Bare],
        ..word(
            "command-password",
            &[
                "docker", "podman", "helm", "nerdctl", "buildah", "skopeo", "az ", "az\t", "oc ",
                "oc\t",
            ],
            concat!(
                r"(?:docker|podman|helm|nerdctl|buildah|skopeo|az|oc)(?:[ \t][^\n|;&]*?)?",
                r"[ \t]login[ \t][^\n|;&]*?-p[ \t=]?",
                maybe_quote!(),
                argument!(),
            ),
        )
    },
    // Clients of databases and remote shells.
    Rule {
        reach: Reach::Command,
        values: &[Value::Bare],
        ..word(
            "command-password",
            &["mysql", "mariadb"],
            concat!(
                r"(?:mysql(?:dump|admin)?|mariadb(?:-dump)?)[ \t](?:[^\n|;&]*?[ \t])?-p",
                maybe_quote!(),
                argument!(),
            ),
        )
    },
    Rule {
        reach: Reach::Command,
        values: &[Value::Bare],
        ..word(
            "command-password",
            &["sshpass", "redis-cli", "mongo"],
            concat!(
                r"(?:sshpass[ \t]+-p|redis-cli[ \t](?:[^\n|;&]*?[ \t])?-a",
                r"|mongo(?:sh|dump)?[ \t](?:[^\n|;&]*?[ \t])?-p)[ \t]*",
                maybe_quote!(),
                argument!(),
            ),
        )
    },
    // A password for `.htpasswd`, after the user name, and after the file unless it is printed.
    Rule {
        reach: Reach::Command,
        values: &[Value::Named, Value::Named],
        ..word(
            "command-password",
            &["htpasswd"],
            concat!(
                r"htpasswd",
                htpasswd_flags!(),
                r"(?:[ \t]+-[A-Za-z]*(?:n[A-Za-z]*b|b[A-Za-z]*n)[A-Za-z]*",
                r"|[ \t]+-[A-Za-z]*n[A-Za-z]*",
                htpasswd_flags!(),
                r"[ \t]+-[A-Za-z]*b[A-Za-z]*|[ \t]+-[A-Za-z]*b[A-Za-z]*",
                htpasswd_flags!(),
                r"[ \t]+-[A-Za-z]*n[A-Za-z]*)",
                htpasswd_flags!(),
                operand!(),
                r"[ \t]+",
                maybe_quote!(),
                r#"([^\s"'|;&<>-][^\s"'|;&<>]{2,})"#,
                r"|htpasswd",
                htpasswd_flags!(),
                r"[ \t]+-[A-Za-z]*b[A-Za-z]*",
                htpasswd_flags!(),
                operand!(),
                operand!(),
                r"[ \t]+",
                maybe_quote!(),
                r#"([^\s"'|;&<>-][^\s"'|;&<>]{2,})"#,
            ),
        )
    },
    // A password or key of a package server.
    Rule {
        reach: Reach::Command,
        values: &[Value::Bare],
        ..word(
            "command-password",
            &["nuget"],
            concat!(
                r"nuget(?:\.exe)?[ \t](?:[^\n|;&]*?[ \t])?(?i-u:-p|-password|-k|-apikey)[ \t]+",
                maybe_quote!(),
                argument!(),
            ),
        )
    },
    Rule {
        values: &[Value::Named],
        ..certain("url-password", &["://"], r#"://[^\s/:@\[\]"'<>]{0,100}:([^\s/@\[\]"'<>]{3,})@"#)
    },
    // A token as a user name, or in URL parameters.
    Rule {
        values: &[Value::Weak],
        ..certain("url-token", &["://"], r"://([A-Za-z0-9_.~-]{20,})@")
    },
    Rule {
        before: Before::Parameter,
        values: &[Value::Bare, Value::Weak],
        ..certain(
            "url-token",
            &[
                "access_token=",
                "accesstoken=",
                "auth_token=",
                "authtoken=",
                "refresh_token=",
                "refreshtoken=",
                "id_token=",
                "idtoken=",
                "api_key=",
                "apikey=",
                "client_secret=",
                "clientsecret=",
                "secret=",
                "password=",
                "passwd=",
                "token=",
                "key=",
                "signature=",
                "sig=",
            ],
            concat!(
                r"(?i-u:(?:access|auth|refresh|id)_?token|api_?key|client_?secret|secret",
                r"|password|passwd)=([A-Za-z0-9_.~%+/-]{8,}={0,2})",
                r"|(?i-u:token|key|signature|sig)=([A-Za-z0-9_.~%+/-]{12,}={0,2})",
            ),
        )
    },
    // Entries of `.netrc`, on one or several lines.
    word(
        "netrc-password",
        &["login"],
        r"login[ \t\r\n]+[^\s]{1,100}[ \t\r\n]+password[ \t]+([^\s]{4,})",
    ),
    // Entries of `.pgpass`: host, port, database, user, password. Any field but the last may be
    // `*`.
    Rule {
        values: &[Value::Named],
        ..certain(
            "pgpass-password",
            &[
                ":5432:", ":5433:", ":5434:", ":5435:", ":5436:", ":5437:", ":5438:", ":5439:",
                ":6432:", ":6543:", ":15432:", ":25432:", ":54320:", ":54321:", ":54322:",
            ],
            concat!(
                r":(?:543[2-9]|6432|6543|15432|25432|5432[0-2]):[^\s:][^\r\n:]{0,63}:[^\s:][^\r\n:]{0,63}:",
                r"((?:[^\s:\\]|\\[:\\]){3,})",
            ),
        )
    },
    Rule {
        values: &[Value::Named],
        ..certain(
            "pgpass-password",
            &[":*:"],
            concat!(
                r":\*:(?:\*|[A-Za-z_][A-Za-z0-9_-]{0,62}):(?:\*|[A-Za-z_][A-Za-z0-9_.@-]{0,62}):",
                // A part of an IPv6 address has up to 4 digits.
                r"((?:[^\s:*\\]|\\[:\\]){5,})",
            ),
        )
    },
    // Docker's `config.json`.
    Rule {
        values: &[Value::Login],
        ..word(
            "docker-auth",
            &["auth"],
            concat!("auth", assigned!(), quote!(), r"([A-Za-z0-9+/]{6,}={0,2})"),
        )
    },
    word(
        "kubernetes-key",
        &["client-key-data"],
        concat!(
            "client-key-data",
            assigned!(),
            // The value may begin on the next line.
            r"(?:[|>][+-]?[ \t]*(?:\r?\n|\\n)[ \t]*)?",
            maybe_quote!(),
            r"([A-Za-z0-9+/]{40,}={0,2})",
        ),
    ),
    // `wp-config.php`: passwords, and random texts of any characters.
    Rule {
        values: &[Value::Named, Value::Short, Value::Quoted],
        ..word(
            "assigned-secret",
            &["define"],
            concat!(
                r"define[ \t]*\([ \t]*",
                quote!(),
                "(?:(?:DB|DATABASE|MYSQL|FTP|SMTP|MAIL|REDIS|WP_REDIS)_(?:PASSWORD|PASSWD|PASS|PWD)",
                quote!(),
                r"[ \t]*,[ \t]*",
                quote!(),
                r#"([^"'\\\r\n]{4,})|"#,
                r"[A-Z0-9_]*(?:PASSWORD|PASSWD|PASS|PWD|SECRET|TOKEN|API_KEY|SECRET_KEY)",
                quote!(),
                r"[ \t]*,[ \t]*",
                quote!(),
                r#"(?:([A-Za-z0-9!@#*._+-]{4,7})["'\\]|([^"'\\\r\n]{8,})))"#,
            ),
        )
    },
    certain(
        "wordpress-salt",
        &["auth_key", "auth_salt", "logged_in_key", "logged_in_salt", "nonce_key", "nonce_salt"],
        concat!(
            r"(?:AUTH|LOGGED_IN|NONCE)_(?:KEY|SALT)(?:",
            quote!(),
            r")?[ \t]*(?:=>|,|=|:)[ \t]*",
            quote!(),
            r#"([^"'\\\r\n]{32,})"#,
        ),
    ),
    // `NuGet.config`.
    Rule {
        values: &[Value::Named],
        ..certain(
            "assigned-secret",
            &["cleartextpassword"],
            concat!(
                "ClearTextPassword",
                quote!(),
                r"[ \t]+value[ \t]*=[ \t]*",
                quote!(),
                r#"([^"'\\<>]{4,})"#
            ),
        )
    },
    Rule {
        values: &[Value::Quoted, Value::Bare],
        ..certain(
            "assigned-secret",
            NAMES,
            concat!(
                r"(?i-u:password|passwd|passphrase|secret|secret_key_base|api[_-]?key",
                r"|secret[_-]?key|access[_-]?key|private[_-]?key|encryption[_-]?key",
                r"|account[_-]?key|signing[_-]?key",
                r"|(?:access|auth|refresh|bearer|api|bot|session|id|secret)[_-]?token)",
                assigned!(),
                "(?:",
                quote!(),
                r#"([^\s"'`\\]{8,})|([A-Za-z0-9+/_.~!@#$%^&*-]{8,}={0,2}))"#,
            ),
        )
    },
    // A short password. Code has similar short names, but not with quoted digits.
    Rule {
        values: &[Value::Short],
        ..certain(
            "assigned-secret",
            &["password", "passwd", "passphrase", "secret", "_pass", "_pwd"],
            concat!(
                r"(?i-u:password|passwd|passphrase|secret|_pass|_pwd)",
                assigned!(),
                quote!(),
                r#"([A-Za-z0-9!@#*._+-]{5,7})["'`\\]"#,
            ),
        )
    },
    // The word alone is also a verb and a folder.
    Rule {
        values: &[Value::Short],
        ..word(
            "assigned-secret",
            &["pass", "pwd"],
            concat!(
                r"(?i-u:pass|pwd)",
                assigned!(),
                quote!(),
                r#"([A-Za-z0-9!@#$%^&*._+-]{5,64})["'`\\]"#,
            ),
        )
    },
    Rule {
        before: Before::Name,
        values: &[Value::Quoted, Value::Bare],
        ..certain(
            "assigned-secret",
            &["_pass", "_pwd"],
            concat!(
                r"(?i-u:_pass|_pwd)",
                assigned!(),
                "(?:",
                quote!(),
                r#"([^\s"'`\\]{8,})|([A-Za-z0-9+/_.~!@#$%^&*-]{8,}={0,2}))"#,
            ),
        )
    },
    Rule {
        before: Before::Variable,
        values: &[Value::Quoted, Value::Bare],
        ..certain(
            "assigned-secret",
            &["_token", "_credential"],
            concat!(
                r"(?:_TOKEN|_CREDENTIAL)",
                assigned!(),
                "(?:",
                quote!(),
                r#"([^\s"'`\\]{8,})|([A-Za-z0-9+/_.~!@#$%^&*-]{8,}={0,2}))"#,
            ),
        )
    },
    // `.npmrc` and connection strings.
    Rule {
        values: &[Value::Bare],
        ..word(
            "assigned-secret",
            &["_auth", "pwd"],
            concat!(
                r"(?:_auth[ \t]*=[ \t]*|(?i-u:pwd)=)",
                maybe_quote!(),
                r"([A-Za-z0-9+/_.~!@#$%^&*-]{8,}={0,2})",
            ),
        )
    },
    // A variable in a container file, in fish or on Windows: `ENV NPM_TOKEN VALUE`, `set -gx
    // NPM_TOKEN VALUE`, `setx NPM_TOKEN VALUE`.
    Rule {
        values: &[Value::Bare],
        ..word(
            "assigned-secret",
            &["env ", "env\t", "set ", "set\t", "setx ", "setx\t"],
            concat!(
                r"(?:ENV|set(?:[ \t]+-[a-zA-Z-]+)+|(?i-u:setx))[ \t]+(?:[A-Z0-9]+_)*",
                r"(?:TOKEN|PASSWORD|PASSWD|PASS|PWD|SECRET|CREDENTIAL|KEY|PAT)[ \t]+",
                maybe_quote!(),
                r"([A-Za-z0-9+/_.~!@#%^&*-]{8,}={0,2})",
            ),
        )
    },
    // Maven's settings.
    Rule {
        values: &[Value::Quoted],
        ..certain(
            "assigned-secret",
            &[
                "<password>",
                "<passphrase>",
                "<token>",
                "<secret>",
                "<apikey>",
                "<api-key>",
                "<privatekey>",
                "<private-key>",
            ],
            concat!(
                r"<(?i-u:password|passphrase|token|secret|api-?key|private-?key)>",
                r"([A-Za-z0-9+/_.~!@#$%^*=-]{8,})",
            ),
        )
    },
    // Variables with less certain names.
    Rule {
        before: Before::Variable,
        values: &[Value::Weak, Value::Weak],
        ..certain(
            "assigned-secret",
            &["_key", "_pat"],
            concat!(
                r#"(?:_KEY|_PAT)(?:=|:| =|\\{0,3}["'][ \t]*[:=])[ \t]*(?:"#,
                quote!(),
                r#"([^\s"'`\\]{12,})|([A-Za-z0-9+/_.~-]{12,}={0,2}))"#,
            ),
        )
    },
    // A word that tests also print, but in another form.
    Rule {
        values: &[Value::Quoted, Value::Bare],
        ..word(
            "assigned-secret",
            &["pass"],
            concat!(
                r"PASS=(?:",
                quote!(),
                r#"([^\s"'`\\]{8,})|([A-Za-z0-9+/_.~!@#$%^&*-]{8,}={0,2}))"#,
            ),
        )
    },
    Rule {
        values: &[Value::Weak, Value::Weak],
        ..certain(
            "assigned-secret",
            &["token", "credential"],
            concat!(
                r"(?i-u:token|credential)",
                assigned!(),
                "(?:",
                quote!(),
                r#"([^\s"'`\\]{12,})|([A-Za-z0-9+/_.~-]{12,}={0,2}))"#,
            ),
        )
    },
];
