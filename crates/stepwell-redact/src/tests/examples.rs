//! Tests each rule with an example, after every possible kind of preceding text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::rules::{Compiled, is_telling, rules};
use crate::*;

/// Characters of a token. Built at run time, so that this file contains no secret.
fn token(len: usize) -> String {
    "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zZ".chars().cycle().take(len).collect()
}

fn hex(len: usize) -> String {
    "5d0c1b7f93ae6482".chars().cycle().take(len).collect()
}

fn upper(len: usize) -> String {
    "QPZRY9X8GF2TVDW0".chars().cycle().take(len).collect()
}

fn base58(len: usize) -> String {
    "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY".chars().cycle().take(len).collect()
}

fn key_lines() -> String {
    format!("{0}\n{0}\nAbcdefgh=\n", token(64))
}

/// The text before a secret, the secret, and the text after it.
struct Example(&'static str, String, &'static str);

/// Secrets that are recognised by their shape.
fn shapes() -> Vec<Example> {
    let key = format!("-----BEGIN EC PRIVATE KEY-----\n{}", key_lines());
    let encoded = |text: &str| STANDARD.encode(text);
    [
        format!("{key}-----END EC PRIVATE KEY-----"),
        format!("{}-----END EC PRIVATE KEY-----", key_lines()),
        format!("AKIA{}", upper(16)),
        format!("ghp_{}", token(36)),
        format!("github_pat_{}", token(82)),
        format!("glpat-{}", token(20)),
        format!("xoxb-{}-{}", hex(12), token(24)),
        format!("hooks.slack.com/services/T{}/B{}", upper(9), token(24)),
        format!("sk_live_{}", token(24)),
        format!("whsec_{}", token(32)),
        format!("sk-ant-api03-{}-AA", token(90)),
        format!("sk-or-v1-{}", hex(64)),
        format!("sk-proj-{}", token(48)),
        format!("sk-{}", token(48)),
        format!("gsk_{}", token(52)),
        format!("xai-{}", token(80)),
        format!("pplx-{}", token(48)),
        format!("r8_{}", token(37)),
        format!("hf_{}", token(34)),
        format!("fw_{}", token(24)),
        format!("AIza{}", token(35)),
        format!("ya29.{}", token(60)),
        format!("npm_{}", token(36)),
        format!("pypi-{}", token(160)),
        format!("SG.{}.{}", token(22), token(43)),
        format!("hvs.{}", token(90)),
        format!("{}.atlasv1.{}", token(14), token(67)),
        format!("dop_v1_{}", hex(64)),
        format!("shpat_{}", hex(32)),
        format!("dckr_pat_{}", token(27)),
        format!("AGE-SECRET-KEY-1{}", upper(58)),
        format!("HRKU-AA{}", token(60)),
        format!("fm2_{}", token(80)),
        format!("fo1_{}", token(43)),
        format!("dp.pt.{}", token(43)),
        format!("figd_{}", token(40)),
        format!("nvapi-{}", token(64)),
        format!("tvly-{}", token(32)),
        format!("discord.com/api/webhooks/112233445566778899/{}", token(68)),
        format!("discordapp.com/api/v10/webhooks/112233445566778899/{}", token(68)),
        format!("discord.com\\/api\\/webhooks\\/112233445566778899\\/{}", token(68)),
        format!("discord.com%2Fapi%2Fwebhooks%2F112233445566778899%2F{}", token(68)),
        format!("hooks.slack.com\\/services\\/T{}\\/B{}", upper(9), token(24)),
        format!("hooks.slack.com%2fservices%2fT{}%2fB{}", upper(9), token(24)),
        format!("{}.GaBcDe.{}", encoded("112233445566778899"), token(38)),
        format!("dapi{}", hex(32)),
        format!("lin_api_{}", token(40)),
        format!("ntn_{}", token(46)),
        format!("NRAK-{}", upper(27)),
        format!("PMAK-{}-{}", hex(24), hex(34)),
        format!("pul-{}", hex(40)),
        format!("pscale_tkn_{}", token(43)),
        format!("sntrys_{}", token(80)),
        format!("rubygems_{}", hex(48)),
        format!("sq0atp-{}", token(22)),
        format!("123456789:AA{}", token(33)),
        format!("glsa_{}_{}", token(32), hex(8)),
        format!("tskey-auth-k{}CNTRL-{}", hex(10), token(32)),
        format!("sbp_{}", hex(40)),
        format!("sb_secret_{}", token(32)),
        format!("ATATT3{}", token(180)),
        format!("cio{}", token(32)),
        format!("SK{}", hex(32)),
        format!("oy2{}", "a1b2c3d4".repeat(6).split_off(5)),
        format!("AAAA{}:APA91b{}", token(7), token(134)),
        format!("{}-us12", hex(32)),
        format!("xprv9s21ZrQH143K{}", base58(96)),
        format!("5J{}", base58(49)),
        format!("Kx{}", base58(50)),
        format!("eyJ{}.eyJ{}.{}", token(20), token(40), token(43)),
        encoded(&format!("{key}-----END EC PRIVATE KEY-----\n")),
        encoded(&format!("ghp_{}", token(36))),
        encoded(&format!("sk-ant-api03-{}", token(90))),
    ]
    .map(|secret| Example("", secret, " "))
    .into()
}

/// Secrets that are recognised by the words before them.
fn named() -> Vec<Example> {
    let login = STANDARD.encode("ann:hunter2");
    let salt = r"k|)b(~;Q<7!wG Xv]0s{*5&eR^dT@mY#zP%uH+cJ-1LfN=oA:iB.8K/3E?6g$2W,9";
    [
        ("aws_secret_access_key = ", token(40), "\n"),
        ("AccountKey=", token(86), ";"),
        ("https://example.com/blob?sv=1&sig=", token(44), " "),
        ("Authorization: Bearer ", token(32), "\r\n"),
        ("Authorization: SSWS ", format!("00{}", token(40)), "\r\n"),
        ("SSWS%20", format!("00{}", token(40)), "&"),
        ("'SSWS\\t", format!("00{}", token(40)), "'"),
        ("Bearer ", token(32), " "),
        ("Cookie: session=", token(32), "\r\n"),
        ("curl -u admin:", token(12), " https://example.com"),
        ("curl -sSu admin:", token(12), " https://example.com"),
        (" --password ", token(12), " "),
        ("docker login -u ann -p ", token(12), " example.com"),
        ("mysql -uroot -p", token(12), " shop"),
        ("sshpass -p ", token(12), " ssh host"),
        ("htpasswd -b .htpasswd ann ", token(12), "\n"),
        ("htpasswd -nbB ann ", "hunter2".to_owned(), "\n"),
        ("htpasswd -bBC 10 .htpasswd ann ", "hunter2".to_owned(), "\n"),
        ("htpasswd -n -b ann ", "hunter2".to_owned(), "\n"),
        ("htpasswd -B -b -n -C 12 ann ", "hunter2".to_owned(), " | tee f"),
        ("htpasswd -C 12 -bB f ann ", "hunter2".to_owned(), "\n"),
        ("htpasswd -b -c -C 12 \"my file\" ann ", "hunter2".to_owned(), "\n"),
        ("dotnet nuget add source feed -u ann -p ", token(12), " --store-password-in-clear-text"),
        ("postgres://app:", token(12), "@db:5432/x"),
        ("https://", token(32), "@github.com/a/b.git"),
        ("https://example.com/?access_token=", token(24), "&x=1"),
        ("login ann password ", token(12), "\n"),
        ("db.example.com:5432:shop:ann:", "hunter2".to_owned(), "\n"),
        ("*:*:*:ann:", "hunter2".to_owned(), "\n"),
        ("*:*:*:*:", "hunter2".to_owned(), "\n"),
        ("db.example.com:*:shop:ann:", "hunter2".to_owned(), "\n"),
        ("localhost:15432:my shop:ann:", r"hun\:ter2".to_owned(), "\n"),
        ("{\"auths\":{\"ghcr.io\":{\"auth\":\"", login, "\"}}}"),
        ("client-key-data: ", token(80), "\n"),
        ("client-key-data: >-\n      ", token(80), "\n"),
        ("client-key-data: |\\n  ", token(80), "\\n"),
        ("define( 'DB_PASSWORD', '", "correct horse 1".to_owned(), "' );"),
        ("define('DB_PASSWORD', '", "hunter2".to_owned(), "');"),
        ("define('DB_PASSWORD', '", "secretpw".to_owned(), "');"),
        ("define('AUTH_KEY', '", salt.to_owned(), "');"),
        ("SECURE_AUTH_SALT='", salt.to_owned(), "'\n"),
        ("<add key=\"ClearTextPassword\" value=\"", "hunter2".to_owned(), "\" />"),
        ("password = \"", token(12), "\""),
        ("password = \"", "hunter2".to_owned(), "\""),
        ("{\"passwd\": \"", "s3cr3t".to_owned(), "\"}"),
        ("auth: { user: 'ann', pass: '", token(12), "' }"),
        ("{\"pass\": \"", "hunter2".to_owned(), "\"}"),
        ("pwd = '", "hunter2".to_owned(), "'"),
        ("DB_PASS=\"", "hunter2".to_owned(), "\""),
        ("client_secret: '", "hunter2".to_owned(), "'"),
        ("db_pass: '", token(12), "'"),
        ("GITHUB_TOKEN=", token(24), "\n"),
        ("//registry.example.com/:_auth=", token(24), "\n"),
        ("Pwd=", token(12), ";"),
        ("ENV NPM_TOKEN ", token(24), "\n"),
        ("<password>", token(12), "</password>"),
        ("OPENAI_KEY=", token(24), "\n"),
        ("PASS=", token(12), "\n"),
        ("token: ", token(24), "\n"),
        ("DB_PASSWORD=", "correcthorse".to_owned(), "\n"),
        ("kind: Secret\ndata:\n  key: ", "aHVudGVyMg==".to_owned(), "\n"),
        ("apiVersion: v1\nstringData:\n  user: \"", "ann-smith".to_owned(), "\"\nkind: Secret\n"),
        ("kind: 'Secret'\ndata: {key: ", "aHVudGVyMg==".to_owned(), "}\n"),
        ("apiVersion: v1\\nkind: Secret\\ndata:\\n  key: ", "aHVudGVyMg==".to_owned(), "\\n"),
        ("     9\tkind: Secret\n    10\tdata:\n    11\t  key: ", "aHVudGVyMg==".to_owned(), "\n"),
        ("+kind: Secret\n+data:\n+  key: ", "aHVudGVyMg==".to_owned(), "\n"),
        (
            "{\"kind\":\"Secret\",\"stringData\":{\"key\":\"",
            r#"{\"a\":\"hunter2\"}"#.to_owned(),
            "\"}}",
        ),
        ("{\"kind\":\"Secret\",\"data\":{\"key\":\"", "aHVudGVyMg==".to_owned(), "\"}}"),
    ]
    .map(|(before, secret, after)| Example(before, secret, after))
    .into()
}

#[test]
fn every_shape_with_a_front_of_its_own_is_known_in_base64() {
    let redactor = Redactor::default();
    // The beginning of these is random, too short, or part of a URL; or they are in base64.
    let others = [
        ":AA",
        ".atlasv1.",
        "-us12",
        "-----END",
        "5J",
        "Kx",
        "SK",
        "discord",
        "hooks",
        "LS0t",
        "Z2hw",
        "c2st",
    ];
    let has_front = |secret: &String| {
        let is_key = secret.starts_with("-----BEGIN");
        is_key || !others.iter().any(|other| secret.contains(other))
    };
    let shapes = shapes().into_iter().map(|Example(_, secret, _)| secret).filter(has_front);
    let shapes: Vec<String> = shapes.map(|secret| STANDARD.encode(secret)).collect();
    assert!(shapes.len() > 50, "{}", shapes.len());
    let is_missed = |it: &&String| redactor.redact(&format!("x: {it}\n")).contains(it.as_str());
    let missed: Vec<_> = shapes.iter().filter(is_missed).collect();
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

/// Texts that can precede a secret, including escapes of embedded texts.
const FRONTS: [&str; 27] = [
    "",
    " ",
    "\n",
    "\t",
    "\r\n",
    "text ",
    "\"",
    "'",
    "`",
    "(",
    "=",
    ":",
    ",",
    "é",
    "\\n",
    "\\t",
    "\\r\\n",
    "\\\"",
    "\\u0022",
    "%3D",
    "%22",
    "%0A",
    "\u{1b}[31m",
    "\u{1b}[1;38;5;196m",
    "\u{1b}[m",
    "\\u001b[31m",
    "\\x1b[0m",
];

#[test]
fn every_rule_has_an_example() {
    let redactor = Redactor::default();
    let texts: Vec<String> = shapes().iter().chain(&named()).map(Example::text).collect();
    for (n, Compiled { rule, .. }) in rules().iter().enumerate() {
        let found = texts.iter().any(|text| redactor.scan(text).is_by(n));
        assert!(found, "{}: {}", rule.name, rule.pattern);
    }
}

#[test]
fn every_kind_of_secret_is_found_behind_every_escape() {
    let redactor = Redactor::default();
    let mut missed = Vec::new();
    for example in shapes().iter().chain(&named()) {
        for front in FRONTS {
            let text = format!("{front}{}", example.text());
            let redacted = redactor.redact(&text).into_owned();
            let Example(before, secret, after) = example;
            // A cookie's name is redacted with its value, and a file's name with its key lines.
            let is_more = before.starts_with("Cookie") || redacted.contains("key-lines");
            let around = (format!("{front}{before}"), *after);
            let is_exact = redacted.starts_with(&around.0) && redacted.ends_with(around.1);
            if redacted.contains(secret.as_str()) || !(is_more || is_exact) {
                missed.push((front, redacted));
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

impl Example {
    fn text(&self) -> String {
        let Self(before, secret, after) = self;
        format!("{before}{secret}{after}")
    }
}

/// Does the text contain eight consecutive characters of the secret?
fn shows(text: &str, secret: &str) -> bool {
    let chars: Vec<char> = secret.chars().collect();
    chars.windows(8).any(|part| text.contains(&part.iter().collect::<String>()))
}

/// The random part of a secret, without the prefix of its kind.
fn random_part(secret: &str) -> &str {
    let begins = |keyword: &&Cow<'static, str>| {
        let front = secret.get(..keyword.len());
        front.is_some_and(|front| front.eq_ignore_ascii_case(keyword))
    };
    let all = rules().iter().flat_map(|it| &it.keywords);
    let front = all.filter(begins).map(|keyword| keyword.len()).max().unwrap_or(0);
    &secret[front..]
}

#[test]
fn a_colour_within_a_secret_hides_it_from_nobody() {
    let redactor = Redactor::default();
    let mut missed = Vec::new();
    for example in shapes().iter().chain(&named()) {
        let Example(before, secret, after) = example;
        for (on, off) in [
            ("\u{1b}[01;31m\u{1b}[K", "\u{1b}[m\u{1b}[K"),
            ("\\u001b[1m", "\\u001b[0m"),
            ("\u{1b}]8;;file:///a\u{1b}\\", "\u{1b}]8;;\u{1b}\\"),
        ] {
            for at in (0..secret.len()).step_by(3).filter(|at| secret.is_char_boundary(*at)) {
                let (front, rest) = secret.split_at(at);
                let (inside, rest) = rest.split_at(rest.floor_char_boundary(4));
                let text = format!("{before}{front}{on}{inside}{off}{rest}{after}");
                let redacted = redactor.redact(&text).into_owned();
                if shows(&redacted, random_part(secret)) || redacted == text {
                    missed.push((text, redacted));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {:#?}", missed.len(), &missed[..missed.len().min(9)]);
}

#[test]
fn a_colour_that_ends_within_a_secret_still_ends() {
    let text = format!("\u{1b}[31mkey ghp_{}\u{1b}[m{} more", token(10), token(26));
    let redacted = Redactor::default().redact(&text).into_owned();
    assert_eq!(redacted, "\u{1b}[31mkey [redacted:github-token]\u{1b}[m more");
}

#[test]
fn a_secret_that_is_cut_short_is_known() {
    let redactor = Redactor::default();
    let mut missed = Vec::new();
    for Example(_, secret, _) in shapes() {
        let random = random_part(&secret);
        // A prefix that says nothing by itself, key lines, and base64.
        let front = secret.len() - random.len();
        let is_other =
            ["-----", "LS0t", "Z2hw", "c2st", "MTE"].iter().any(|it| secret.starts_with(it));
        if is_other || !is_telling(&secret[..front]) {
            continue;
        }
        // A URL names a host before its secret, and a few characters may look like words.
        let random = random.rsplit('/').next().unwrap_or(random);
        for end in secret.len() - random.len() + 12..secret.len() {
            for behind in ["", " [truncated]", "…", "...", "\"", "\n"] {
                let text = format!("key={}{behind}", &secret[..end]);
                let redacted = redactor.redact(&text).into_owned();
                if shows(&redacted, random) {
                    missed.push(redacted);
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {:#?}", missed.len(), &missed[..missed.len().min(30)]);
}

#[test]
fn a_token_is_known_in_the_middle_of_a_word() {
    let redactor = Redactor::default();
    let mut missed = Vec::new();
    for secret in [
        format!("hf_{}", token(34)),
        format!("gsk_{}", token(52)),
        format!("r8_{}", token(37)),
        format!("fw_{}", token(24)),
        format!("hvs.{}", token(90)),
        format!("ntn_{}", token(46)),
        format!("secret_{}", token(43)),
        format!("figd_{}", token(40)),
    ] {
        for front in ["_", "x", "MY_", "token_", "7", "%253D", "a%25253D", "\\\\u0022"] {
            let text = format!("{front}{secret}");
            if redactor.redact(&text).contains(&secret[..]) {
                missed.push(text);
            }
        }
    }
    let secret = format!("sk-{}", token(48));
    for front in ["_", "%253D", "%25253d"] {
        let text = format!("{front}{secret}");
        if redactor.redact(&text).contains(&secret) {
            missed.push(text);
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
    for text in [
        format!("task-{}", hex(24)),
        format!("disk-{}", hex(32)),
        "self.shelf_abcdefghijklmnopqrstuvwxyzabcdefghijkl".to_owned(),
        "hf_transformers2 sk-loading1 fw_update2 npm_config_user_agent2 sk-ant-your-key-1"
            .to_owned(),
        "glpat-test-token1 ghp_xxxxxxxxxxxx pypi-simple-index-2".to_owned(),
    ] {
        assert_eq!(redactor.redact(&text), text);
    }
}

/// A private key as programs write it.
fn private_key(label: &str, columns: usize, lines: usize) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        char::from(alphabet[usize::try_from(state >> 58).unwrap()])
    };
    let mut body = String::new();
    for line in 0..lines {
        let columns = if line + 1 == lines { columns / 2 } else { columns };
        body.extend((0..columns).map(|_| next()));
        body.push_str(if line + 1 == lines { "==\n" } else { "\n" });
    }
    format!("-----BEGIN {label}-----\n{body}-----END {label}-----\n")
}

/// The base64 characters of a key.
fn body(key: &str) -> String {
    key.lines().filter(|line| !line.starts_with('-')).collect()
}

/// Keys of several kinds, as programs show them: plain, indented, numbered, as search results.
fn shown_keys() -> Vec<(String, String)> {
    let mut shown = Vec::new();
    for (label, columns, lines) in
        [("RSA PRIVATE KEY", 64, 25), ("OPENSSH PRIVATE KEY", 70, 7), ("PRIVATE KEY", 64, 3)]
    {
        let key = private_key(label, columns, lines);
        for front in ["", "    ", "> ", "id_rsa:", "\u{1b}[35mid_rsa\u{1b}[m:"] {
            let lines: String = key.lines().map(|line| format!("{front}{line}\n")).collect();
            shown.push((lines, body(&key)));
        }
        let numbered = key.lines().enumerate().map(|(n, line)| format!("{:6}\t{line}\n", n + 1));
        shown.push((numbered.collect(), body(&key)));
        shown.push((key.replace('\n', "\r\n"), body(&key)));
        shown.push((key.replace('\n', "\\n"), body(&key)));
    }
    shown
}

#[test]
fn of_a_private_key_that_is_cut_anywhere_nothing_is_shown() {
    let redactor = Redactor::default();
    let mut missed = Vec::new();
    for (key, body) in shown_keys() {
        for end in (40..key.len()).step_by(7).filter(|end| key.is_char_boundary(*end)) {
            for behind in ["", " [truncated]", "\n[truncated]", "...\nand more", "\n$ ls\nfile one"]
            {
                let text = format!("$ head -c {end} key\n{}{behind}", &key[..end]);
                let redacted = redactor.redact(&text).into_owned();
                if shows(&redacted, &body) || !redacted.ends_with(behind) {
                    missed.push((text, redacted));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {:#?}", missed.len(), &missed[..missed.len().min(4)]);
}

#[test]
fn of_the_tail_of_a_private_key_nothing_is_shown() {
    let redactor = Redactor::default();
    let mut missed = Vec::new();
    for (key, body) in shown_keys() {
        for start in (0..key.len() - 50).step_by(7).filter(|start| key.is_char_boundary(*start)) {
            for (before, behind) in [("", ""), ("the end:\n", "\n$ ls\n")] {
                let text = format!("{before}{}{behind}", &key[start..]);
                let redacted = redactor.redact(&text).into_owned();
                if shows(&redacted, &body) || !redacted.starts_with(before) {
                    missed.push((text, redacted));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {:#?}", missed.len(), &missed[..missed.len().min(4)]);
}

#[test]
fn a_secret_that_is_split_over_texts_is_taken_out_of_each() {
    let redactor = Redactor::default();
    let key = private_key("OPENSSH PRIVATE KEY", 70, 7);
    let token = format!("ghp_{}", token(36));
    for (whole, secret) in [(&key, body(&key)), (&token, token[4..].to_owned())] {
        for at in 1..whole.len() {
            let texts = [format!("here: {}", &whole[..at]), format!("{} done", &whole[at..])];
            let redacted = redactor.redact_joined(&texts).unwrap().concat();
            assert!(!shows(&redacted, &secret), "{at}: {redacted}");
            assert!(redacted.starts_with("here: ") && redacted.ends_with(" done"), "{redacted}");
        }
    }
    assert_eq!(redactor.redact_joined(&["the pass", "word is the first word"]), None);
}

#[test]
fn what_is_public_is_shown() {
    let redactor = Redactor::default();
    for label in ["CERTIFICATE", "PUBLIC KEY", "PGP PUBLIC KEY BLOCK", "PGP SIGNATURE"] {
        let key = private_key(label, 64, 9);
        assert_eq!(redactor.redact(&key), key);
    }
    for text in [
        "the file begins with -----BEGIN PUBLIC KEY----- and goes on".to_owned(),
        format!("{}\nword\nmore words", token(64)),
        format!("{}\n{}\n{}", hex(64), hex(64), hex(64)),
    ] {
        assert_eq!(redactor.redact(&text), text);
    }
}
