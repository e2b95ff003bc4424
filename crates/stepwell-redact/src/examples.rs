//! Each rule is tried on an example, behind everything that can stand in front of one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::rules::{Compiled, rules};
use super::*;

/// Characters of a token. Put together here, so that no file of ours holds one.
fn token(len: usize) -> String {
    "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zZ".chars().cycle().take(len).collect()
}

fn hex(len: usize) -> String {
    "0123456789abcdef".chars().cycle().take(len).collect()
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

/// What stands in front of a secret, the secret, and what follows.
struct Example(&'static str, String, &'static str);

/// Secrets of a shape of their own.
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
        format!("discord.com/api/webhooks/123456789012345678/{}", token(68)),
        format!("discordapp.com/api/v10/webhooks/123456789012345678/{}", token(68)),
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

/// Secrets that the words in front of them make.
fn named() -> Vec<Example> {
    let login = STANDARD.encode("ann:hunter2");
    let salt = r"k|)b(~;Q<7!wG Xv]0s{*5&eR^dT@mY#zP%uH+cJ-1LfN=oA:iB.8K/3E?6g$2W,9";
    [
        ("aws_secret_access_key = ", token(40), "\n"),
        ("AccountKey=", token(86), ";"),
        ("https://example.com/blob?sv=1&sig=", token(44), " "),
        ("Authorization: Bearer ", token(32), "\r\n"),
        ("Authorization: SSWS ", format!("00{}", token(40)), "\r\n"),
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
        ("postgres://app:", token(12), "@db:5432/x"),
        ("https://", token(32), "@github.com/a/b.git"),
        ("https://example.com/?access_token=", token(24), "&x=1"),
        ("login ann password ", token(12), "\n"),
        ("db.example.com:5432:shop:ann:", "hunter2".to_owned(), "\n"),
        ("*:*:*:ann:", "hunter2".to_owned(), "\n"),
        ("{\"auths\":{\"ghcr.io\":{\"auth\":\"", login, "\"}}}"),
        ("client-key-data: ", token(80), "\n"),
        ("define( 'DB_PASSWORD', '", "correct horse 1".to_owned(), "' );"),
        ("define('DB_PASSWORD', '", "hunter2".to_owned(), "');"),
        ("define('AUTH_KEY', '", salt.to_owned(), "');"),
        ("SECURE_AUTH_SALT='", salt.to_owned(), "'\n"),
        ("<add key=\"ClearTextPassword\" value=\"", "hunter2".to_owned(), "\" />"),
        ("password = \"", token(12), "\""),
        ("password = \"", "hunter2".to_owned(), "\""),
        ("{\"passwd\": \"", "s3cr3t".to_owned(), "\"}"),
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
        ("{\"kind\":\"Secret\",\"data\":{\"key\":\"", "aHVudGVyMg==".to_owned(), "\"}}"),
    ]
    .map(|(before, secret, after)| Example(before, secret, after))
    .into()
}

/// What can stand in front of a secret. Among it are the escapes of texts that are part of others.
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
            let redacted = redactor.redact(&text);
            let Example(before, secret, after) = example;
            // A cookie's name goes with its value, and the name of a file with a key's lines.
            let is_more = before.starts_with("Cookie") || redacted.contains("key-lines");
            let around = (format!("{front}{before}"), *after);
            let is_exact = redacted.starts_with(&around.0) && redacted.ends_with(around.1);
            if redacted.contains(secret.as_str()) || !(is_more || is_exact) {
                missed.push((front, redacted.into_owned()));
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
