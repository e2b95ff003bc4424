//! Redaction removes secrets and nothing else.

use std::borrow::Cow;
use std::sync::LazyLock;

use proptest::prelude::*;
use stepwell::Message;
use stepwell::log::{RedactMessages as _, Redactor};
use stepwell::model::{Image, Opaque, Part, Role, Text, ToolResult};

const GIVEN: &str = "my-own-gateway-key-17";

fn redactor() -> &'static Redactor {
    static REDACTOR: LazyLock<Redactor> =
        LazyLock::new(|| Redactor::new([GIVEN.to_owned(), "short".to_owned()]));
    &REDACTOR
}

/// Characters of a token. Built at run time, so that this file contains no secret.
fn token(len: usize) -> String {
    "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zZ".chars().cycle().take(len).collect()
}

fn hex(len: usize) -> String {
    "0123456789abcdef".chars().cycle().take(len).collect()
}

fn key_block() -> String {
    let line = token(64);
    format!("-----BEGIN RSA PRIVATE KEY-----\n{line}\n{line}\nAbc=\n-----END RSA PRIVATE KEY-----")
}

/// Each rule with a text before the secret, the secret, and a text after it.
fn planted() -> Vec<(&'static str, &'static str, String, &'static str)> {
    let upper = "ABCDEFGH23456789";
    vec![
        ("private-key", "", key_block(), "\n"),
        ("private-key", "\"private_key\": \"", key_block().replace('\n', "\\n"), "\\n\""),
        ("private-key", "key: ", key_block().replace("RSA ", ""), ""),
        ("aws-access-key-id", "id ", format!("AKIA{upper}"), " "),
        ("aws-access-key-id", "x", format!("ASIA{upper}"), "x"),
        ("aws-secret-key", "aws_secret_access_key = ", token(40), "\n"),
        ("aws-secret-key", "\"SecretAccessKey\": \"", token(40), "\""),
        ("github-token", "", format!("ghp_{}", token(36)), ""),
        ("github-token", "token=", format!("gho_{}", token(36)), "\n"),
        ("github-token", "https://", format!("ghs_{}", token(36)), "@github.com/a/b"),
        ("github-token", "", format!("github_pat_{}", token(82)), ""),
        ("gitlab-token", "", format!("glpat-{}", token(20)), ""),
        ("slack-token", "", format!("xoxb-{}-{}", hex(12), token(24)), ""),
        ("stripe-key", "", format!("sk_live_{}", token(24)), ""),
        ("stripe-key", "", format!("rk_live_{}", token(24)), ""),
        ("openai-key", "key ", format!("sk-{}", token(48)), "."),
        ("openai-key", "", format!("sk-proj-{}-_{}", token(40), token(9)), ""),
        ("anthropic-key", "", format!("sk-ant-api03-{}-AA", token(90)), ""),
        ("google-key", "?key=", format!("AIza{}", token(35)), "&x=1"),
        ("npm-token", "//registry/:_authToken=", format!("npm_{}", token(36)), "\n"),
        ("pypi-token", "", format!("pypi-{}", token(160)), ""),
        ("sendgrid-key", "", format!("SG.{}.{}", token(22), token(43)), ""),
        ("twilio-key", "", format!("SK{}", hex(32)), ""),
        ("jwt", "", format!("eyJ{}.eyJ{}.{}", token(20), token(40), token(43)), ""),
        ("authorization", "Authorization: Bearer ", token(32), "\r\n"),
        ("authorization", "-H \"authorization: Basic ", "dXNlcjpwYXNzd29yZA==".into(), "\""),
        ("url-password", "postgres://app:", "hunter2!".into(), "@db:5432/x"),
        ("assigned-secret", "password = \"", "correct-horse".into(), "\""),
        ("assigned-secret", "DB_PASSWORD='", "hunter2hunter2".into(), "'"),
        ("assigned-secret", "api_key: ", token(20), "\n"),
        ("assigned-secret", "X-Api-Key: ", hex(32), "\n"),
        ("assigned-secret", "{\"client_secret\":\"", token(24), "\"}"),
        ("assigned-secret", "{\\\"password\\\": \\\"", "hunter2hunter2".into(), "\\\"}"),
        ("assigned-secret", "passphrase := `", "correcthorsebattery".into(), "`"),
        ("provider-key", "it is ", GIVEN.into(), "!"),
    ]
}

#[test]
fn each_rule_takes_out_the_secret_and_leaves_what_is_around_it() {
    let redactor = redactor();
    for (rule, before, secret, after) in planted() {
        let text = format!("{before}{secret}{after}");
        assert_eq!(redactor.redact(&text), format!("{before}[redacted:{rule}]{after}"), "{text}");
        assert!(redactor.holds_secret(text.as_bytes()).is_some(), "{text}");
        let bytes = [b"\xff\xfe\0", text.as_bytes(), b"\xff"].concat();
        assert!(redactor.holds_secret(&bytes).is_some(), "{text}");
    }
}

#[test]
fn what_only_looks_like_a_secret_is_left_alone() {
    let redactor = redactor();
    let image = token(4000);
    let innocent = [
        "commit 79323e8d2f0b5f7f7d5f4c0f1a2b3c4d5e6f7a8b",
        "550e8400-e29b-41d4-a716-446655440000",
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        &format!("data:image/png;base64,{image}"),
        "The password is checked by the server; a secret: nobody knows. Ask for a token.",
        "a task-force, a disk-encryption-software-comparison, risk-management-and-more",
        "let password = read_password()?;",
        "password: String,",
        "api_key: Option<String>",
        "password = getpass.getpass()",
        "password=$DB_PASSWORD",
        "password = \"${DB_PASSWORD}\"",
        "apiKey: process.env.OPENAI_API_KEY2,",
        "api_key = os.environ[\"API_KEY_2\"]",
        "api_key = \"{{ secrets.api_key }}\"",
        "password: ********",
        "\"password\": \"Passwort\"",
        "private_key = /etc/ssl/private/server1.pem",
        "PWD=/home/user1/project",
        "https://example.com:8080/a@b",
        "git@github.com:owner/repo.git",
        "http://localhost:3000 and user@example.com",
        "-----BEGIN PUBLIC KEY-----\nMFwwDQYJ\n-----END PUBLIC KEY-----",
        "Authorization: Bearer <token>",
        "my short key",
        "skeleton AKIA and ghp_ and sk- and eyJ are prefixes",
    ];
    for text in innocent {
        assert!(matches!(redactor.redact(text), Cow::Borrowed(_)), "{text}");
        assert_eq!(redactor.holds_secret(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn a_private_key_that_was_cut_off_is_taken_out_too() {
    let redactor = redactor();
    let block = key_block();
    let cut = &block[..block.len() - 40];
    assert!(!redactor.redact(cut).contains(&token(20)), "{cut}");
    let cut = &block[40..];
    assert!(!redactor.redact(cut).contains(&token(64)[40..]), "{cut}");
}

#[test]
fn lines_from_the_middle_of_a_private_key_are_taken_out() {
    let redactor = redactor();
    let line = |n: usize| format!("{}{}", "Ab3/x+Zq".repeat(7), token(8 + n)).split_off(n);
    let lines: Vec<String> = (0..3).map(line).collect();
    assert!(lines.iter().all(|line| line.len() == 64));
    for text in [
        format!("{}\n", lines.join("\n")),
        format!("server.key:3:{}\nserver.key:4:{}\n", lines[0], lines[1]),
        format!("[lines 2 to 3]\n{}\n{}\nend", lines[1], lines[2]),
    ] {
        let redacted = redactor.redact(&text);
        assert!(redacted.contains("[redacted:key-lines]"), "{redacted}");
        assert!(lines.iter().all(|line| !redacted.contains(&line[..32])), "{redacted}");
    }
    // Public texts and digests that look like secrets.
    let certificate =
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"));
    let digests = format!("{0}\n{0}\n", "0123456789abcdef".repeat(4));
    for innocent in [certificate.as_str(), &digests, &lines[0]] {
        assert_eq!(redactor.redact(innocent), innocent);
    }
    // In a whole file a key has a beginning, so this is not a key.
    assert_eq!(redactor.holds_secret(lines.join("\n").as_bytes()), None);
}

#[test]
fn values_of_the_environment_are_taken_out_if_they_are_no_words() {
    let secrets = ["wJalrXUtnFEMI/K7MDENG/bPxR", "hunter2-x9", "correct-horse-battery-staple"];
    let others = ["postgres", "hunter2", "/run/secrets/token-1"];
    let values = secrets.into_iter().chain(others).map(str::to_owned);
    let redactor = Redactor::with_environment([], values);
    for secret in secrets {
        assert_eq!(redactor.redact(secret), "[redacted:environment]");
    }
    for other in others {
        assert_eq!(redactor.redact(other), other);
    }
}

#[test]
fn a_secret_beside_another_is_taken_out_too() {
    let redactor = redactor();
    let secrets = planted();
    for (_, _, one, _) in &secrets[..24] {
        for (_, _, other, _) in &secrets[..24] {
            if one.len() == 40 || other.len() == 40 {
                continue; // an AWS secret is only recognised by the words in front of it
            }
            let text = redactor.redact(&format!("{one}{other}")).into_owned();
            assert!(!text.contains(one.as_str()) && !text.contains(other.as_str()), "{text}");
        }
    }
}

#[test]
fn arguments_stay_json_and_the_rest_of_them_stays_as_it_was() {
    let redactor = redactor();
    let redacted = |arguments: &str| {
        let message = Message::assistant("").calling("1", "t", arguments);
        let (message, changed) = redactor.redact_message(message);
        (message.calls().next().unwrap().arguments.clone(), changed)
    };
    let plain = "{ \"b\" : 1e2, \"a\":\"x\\u0041\" }";
    assert_eq!(redacted(plain), (plain.to_owned(), false));
    let (text, changed) =
        redacted("{ \"b\" : 1e2, \"content\":\"password=\\\"hunter2hunter2\\\"\\n\" }");
    assert!(changed);
    assert_eq!(
        text,
        "{ \"b\" : 1e2, \"content\":\"password=\\\"[redacted:assigned-secret]\\\"\\n\" }"
    );
    let (text, _) = redacted("{\"password\":\"back\\\\slash-1\",\"n\":1}");
    assert_eq!(text, "{\"password\":\"[redacted:assigned-secret]\",\"n\":1}");
    let (text, _) = redacted(&format!("{{\"k\":\"{}\"}}", key_block().replace('\n', "\\n")));
    assert_eq!(text, "{\"k\":\"[redacted:private-key]\"}");
    // A character that ends a value elsewhere must not turn a harmless text into a secret.
    let (_, changed) = redacted("{\"a\":\"password=\\\\-A+_AA0\"}");
    assert!(!changed);
    let (text, _) = redacted(&format!("{{\"half\": \"ghp_{}", token(36)));
    assert_eq!(text, "{\"half\": \"[redacted:github-token]");
}

#[test]
fn every_part_of_a_message_is_redacted() {
    let secret = format!("ghp_{}", token(36));
    let opaque = |data: &str| Some(Opaque { provider: "p".to_owned(), data: data.to_owned() });
    let signed = |text: &str| Text { text: text.to_owned(), opaque: opaque("signature") };
    let image =
        |data: &str| Image { media_type: "image/png".into(), data: data.into(), opaque: None };
    let parts = vec![
        Part::Text(signed(&secret)),
        Part::Thinking(signed(&secret)),
        Part::Thinking(signed("nothing")),
        Part::Text(Text { text: "x".to_owned(), opaque: opaque(&secret) }),
        Part::Image(image(&format!("https://u:{secret}@host/i.png"))),
        Part::Image(image("AKIAAAAAAAAAAAAAAAAA")),
        Part::ToolResult(ToolResult { text: secret.clone(), ..ToolResult::default() }),
    ];
    let (message, changed) = redactor().redact_message(Message::new(Role::Assistant, parts));
    assert!(changed);
    let json = serde_json::to_string(&message).unwrap();
    assert!(!json.contains(&secret), "{json}");
    let expected = [
        Part::Text(signed("[redacted:github-token]")),
        // Its signature would belong to another thought.
        Part::Thinking(Text { text: "[redacted:github-token]".to_owned(), opaque: None }),
        Part::Thinking(signed("nothing")),
        Part::text("x"),
        Part::Image(image("https://u:[redacted:github-token]@host/i.png")),
        Part::Image(image("AKIAAAAAAAAAAAAAAAAA")),
    ];
    assert_eq!(message.parts[..6], expected);
    let (again, changed) = redactor().redact_message(message.clone());
    assert_eq!((again, changed), (message, false));
}

#[test]
fn a_debug_print_does_not_tell_the_keys() {
    assert!(!format!("{:?}", redactor()).contains(GIVEN));
}

#[test]
fn a_secret_behind_very_many_openings_of_others_is_found() {
    let redactor = redactor();
    for piece in ["password=", "secret=\"secret:", "://a:", "-----BEGIN PRIVATE KEY-----", "eyJ"] {
        // Searching from each opening to the end would take hours.
        let text = format!("{} {GIVEN}", piece.repeat(20_000));
        assert!(!redactor.redact(&text).contains(GIVEN), "{piece}");
    }
}

fn piece() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "password=",
        "secret: \"",
        "\"",
        "'",
        "\\",
        "://u:",
        "@",
        " ",
        "\n",
        "Bearer ",
        "Authorization: ",
        "[redacted:jwt]",
        "[redacted:",
        "]",
        "=",
        "-----BEGIN ",
        "é",
        "(",
        "${",
        "ghp_",
        "sk-",
        "AKIA",
        "abc12345",
        "{\"token\":",
        ".",
    ]);
    let secrets: Vec<String> = planted()
        .into_iter()
        .map(|(_, before, secret, after)| format!("{before}{secret}{after}"))
        .collect();
    prop_oneof![
        4 => words.prop_map(str::to_owned),
        2 => prop::sample::select(secrets),
        2 => "[a-zA-Z0-9+/_=.-]{0,12}",
        1 => any::<String>(),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..12).prop_map(|pieces| pieces.concat())
}

/// Secrets that are recognised by their shape, in any surroundings.
fn shaped() -> Vec<String> {
    let by_shape = |rule: &str| {
        !["aws-secret-key", "authorization", "url-password", "assigned-secret", "twilio-key"]
            .contains(&rule)
    };
    let secrets = planted().into_iter().filter(|(rule, ..)| by_shape(rule));
    secrets.map(|(_, _, secret, _)| secret).filter(|secret| !secret.contains("sk-aB")).collect()
}

#[test]
fn brackets_of_redactions_kind_hide_no_secret() {
    let redacted = redactor().redact("[redacted:my-own-gateway-key-17]").into_owned();
    assert_eq!(redacted, "[redacted:[redacted:provider-key]]");
}

proptest! {
    #[test]
    fn a_planted_secret_never_survives(
        before in text(),
        secret in prop::sample::select(shaped()),
        after in text(),
    ) {
        let redacted = redactor().redact(&format!("{before}{secret}{after}")).into_owned();
        prop_assert!(!redacted.contains(&secret), "{redacted}");
    }

    #[test]
    fn redacting_twice_changes_nothing(text in text()) {
        let redactor = redactor();
        let once = redactor.redact(&text).into_owned();
        let twice = redactor.redact(&once).into_owned();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn a_secret_in_arguments_never_survives_and_they_stay_json(
        key in piece(),
        before in text(),
        secret in prop::sample::select(shaped()),
        after in text(),
    ) {
        let value = format!("{before}{secret}{after}");
        let arguments = serde_json::json!({ key: [{ "a": value }] }).to_string();
        let message = Message::assistant("").calling("1", "t", arguments);
        let (message, changed) = redactor().redact_message(message);
        prop_assert!(changed);
        let arguments = &message.calls().next().unwrap().arguments;
        let parsed: serde_json::Value = serde_json::from_str(arguments).unwrap();
        let mut strings = Vec::new();
        collect(&parsed, &mut strings);
        prop_assert!(strings.iter().all(|text| !text.contains(&secret)), "{arguments}");
        let (again, _) = redactor().redact_message(message.clone());
        prop_assert_eq!(again, message);
    }
}

fn collect(value: &serde_json::Value, strings: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => strings.push(text.clone()),
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, strings)),
        serde_json::Value::Object(map) => map.iter().for_each(|(key, value)| {
            strings.push(key.clone());
            collect(value, strings);
        }),
        _ => {}
    }
}
