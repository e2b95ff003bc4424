//! Tests the rules against vendors' documented secrets, and against similar harmless texts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::borrow::Cow;

use stepwell_redact::Redactor;

/// Characters of a token. Built at run time, so that this file contains no secret.
fn token(len: usize) -> String {
    "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zZ".chars().cycle().take(len).collect()
}

fn letters(len: usize) -> String {
    "aBdEgHjKmNpQrStUvWxYzZ".chars().cycle().take(len).collect()
}

fn hex(len: usize) -> String {
    "0123456789abcdef".chars().cycle().take(len).collect()
}

fn upper(len: usize) -> String {
    "QPZRY9X8GF2TVDW0".chars().cycle().take(len).collect()
}

#[test]
fn secrets_are_known_by_the_forms_that_their_vendors_document() {
    let redactor = Redactor::default();
    for (rule, secret) in [
        ("huggingface-token", format!("hf_{}", letters(34))),
        ("huggingface-token", format!("hf_{}", token(34))),
        ("openrouter-key", format!("sk-or-v1-{}", hex(64))),
        ("groq-key", format!("gsk_{}", token(52))),
        ("xai-key", format!("xai-{}", token(80))),
        ("replicate-token", format!("r8_{}", token(37))),
        ("perplexity-key", format!("pplx-{}", token(48))),
        ("google-token", format!("ya29.{}", token(60))),
        ("google-token", format!("GOCSPX-{}", token(28))),
        ("vault-token", format!("hvs.{}", token(90))),
        ("digitalocean-token", format!("dop_v1_{}", hex(64))),
        ("shopify-token", format!("shpat_{}", hex(32))),
        ("docker-token", format!("dckr_pat_{}", token(27))),
        ("age-key", format!("AGE-SECRET-KEY-1{}", upper(58))),
        ("databricks-token", format!("dapi{}", hex(32))),
        ("heroku-key", format!("HRKU-AA{}", token(60))),
        ("fly-token", format!("fm2_{}", token(80))),
        ("doppler-token", format!("dp.pt.{}", token(43))),
        ("figma-token", format!("figd_{}", token(40))),
        ("nvidia-key", format!("nvapi-{}", token(64))),
        ("tavily-key", format!("tvly-{}", token(32))),
        ("discord-webhook", format!("discord.com/api/webhooks/123456789012345678/{}", token(68))),
        ("linear-key", format!("lin_api_{}", token(40))),
        ("notion-token", format!("ntn_{}", token(46))),
        ("new-relic-key", format!("NRAK-{}", upper(27))),
        ("postman-key", format!("PMAK-{}-{}", hex(24), hex(34))),
        ("pulumi-token", format!("pul-{}", hex(40))),
        ("planetscale-token", format!("pscale_tkn_{}", token(43))),
        ("sentry-token", format!("sntrys_{}", token(80))),
        ("rubygems-key", format!("rubygems_{}", hex(48))),
        ("telegram-token", format!("123456789:AA{}", token(33))),
        ("grafana-token", format!("glsa_{}_{}", token(32), hex(8))),
        ("tailscale-key", format!("tskey-auth-k{}CNTRL-{}", hex(10), token(32))),
        ("terraform-token", format!("{}.atlasv1.{}", token(14), token(67))),
        ("gitlab-token", format!("glpat-{}", token(20))),
        ("cargo-token", format!("cio{}", token(32))),
    ] {
        for (before, after) in [("", ""), ("key is ", "."), ("X=", "\n"), ("\"", "\"")] {
            let text = format!("{before}{secret}{after}");
            let expected = format!("{before}[redacted:{rule}]{after}");
            let redacted = redactor.redact(&text);
            // Some tokens may contain a full stop.
            assert!(
                redacted == expected || redacted == expected.trim_end_matches('.'),
                "{redacted}"
            );
            assert!(redactor.holds_secret(text.as_bytes()).is_some(), "{text}");
        }
    }
}

#[test]
fn what_stands_around_a_secret_makes_it_one() {
    let redactor = Redactor::default();
    let value = token(24);
    for (rule, before, after) in [
        ("assigned-secret", "token = \"", "\""),
        ("assigned-secret", "token: ", "\n"),
        ("assigned-secret", "GITHUB_TOKEN=", "\n"),
        ("assigned-secret", "export NPM_TOKEN='", "'"),
        ("assigned-secret", "DEPLOY_TOKEN: \"", "\""),
        ("assigned-secret", "{\"token\": \"", "\"}"),
        ("assigned-secret", "//registry/:_authToken=", "\n"),
        ("assigned-secret", "ci_token := `", "`"),
        ("command-password", "curl -u admin:", " https://example.com"),
        ("command-password", "curl -su admin:", " https://example.com"),
        ("command-password", "curl -sSfLu \"admin:", "\" https://example.com"),
        ("assigned-secret", "<password>", "</password>"),
        ("assigned-secret", "<token>", "</token>"),
        ("assigned-secret", "set -gx GITHUB_TOKEN ", "\n"),
        ("assigned-secret", "setx NPM_TOKEN ", "\n"),
        ("command-password", "curl -sS --user 'admin:", "' https://example.com"),
        ("command-password", "wget --http-password ", " https://example.com"),
        ("url-token", "https://", "@github.com/a/b.git"),
        ("url-token", "https://example.com/hook?access_token=", "&x=1"),
        ("url-token", "GET /v1?api_key=", " HTTP/1.1"),
        ("url-password", "https://oauth2:", "@github.com/a/b.git"),
        ("command-password", "vercel deploy --token ", " --prod"),
        ("command-password", "gh-tool --api-key=", " list"),
        ("command-password", "x --client-secret '", "'"),
        ("command-password", "docker login -u ann -p ", " registry.example.com"),
        ("command-password", "podman login registry.example.com -p", "\n"),
        ("command-password", "mysql -uroot -p", " shop"),
        ("command-password", "mysqldump -h db -p'", "' shop"),
        ("command-password", "sshpass -p ", " ssh host"),
        ("command-password", "redis-cli -h cache -a ", " ping"),
        ("command-password", "mongosh -u ann -p ", "\n"),
        ("assigned-secret", "ENV NPM_TOKEN ", "\nRUN npm ci"),
        ("assigned-secret", "ENV DB_PASSWORD \"", "\""),
        ("assigned-secret", "SECRET_KEY_BASE=", "\n"),
        ("assigned-secret", "OPENAI_KEY=", "\n"),
        ("assigned-secret", "STRIPE_KEY: '", "'"),
        ("assigned-secret", "export GH_PAT=", "\n"),
        ("assigned-secret", "//registry.example.com/:_auth=", "\n"),
        ("assigned-secret", "Server=db;Uid=app;Pwd=", ";"),
        ("authorization", "send Bearer ", " to it"),
        ("url-token", "https://example.com/blob?sv=1&sig=", "&se=2"),
        ("authorization", "Cookie: ", "\r\n"),
    ] {
        let value = match before {
            "Cookie: " => format!("theme=dark; session={value}"),
            _ => value.clone(),
        };
        let text = format!("{before}{value}{after}");
        let expected = format!("{before}[redacted:{rule}]{after}");
        assert_eq!(redactor.redact(&text), expected, "{text}");
    }
    let key = format!("{}==", token(86));
    let text = format!("AccountName=x;AccountKey={key};EndpointSuffix=core.windows.net");
    let redacted = redactor.redact(&text).into_owned();
    assert_eq!(
        redacted,
        "AccountName=x;AccountKey=[redacted:azure-key];EndpointSuffix=core.windows.net"
    );
}

/// Random letters and digits, the same ones each time.
struct Chance(u64);

impl Chance {
    fn value(&mut self, len: usize) -> String {
        const ALL: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        loop {
            let next = |_| {
                self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
                char::from(ALL[usize::try_from(self.0 >> 40).unwrap() % ALL.len()])
            };
            let value: String = (0..len).map(next).collect();
            let digits = value.bytes().filter(u8::is_ascii_digit).count();
            if digits > 0 && digits < len {
                return value;
            }
        }
    }
}

#[test]
fn what_chance_made_is_known_wherever_its_place_is_named() {
    let redactor = Redactor::default();
    let mut chance = Chance(20_261_117);
    for len in [12, 16, 20, 24, 32, 40] {
        for (before, after) in [
            ("GITHUB_TOKEN=", "\n"),
            ("export NPM_TOKEN=", ""),
            ("token: ", "\n"),
            ("{\"token\":\"", "\"}"),
            ("https://api.acme.io/a?access_token=", "&page=2"),
            ("https://api.acme.io/a?api_key=", ""),
            ("https://api.acme.io/a?token=", " "),
            ("OPENAI_KEY=", "\n"),
            ("GH_PAT='", "'"),
            ("deploy --token ", " x"),
            ("password=", "\n"),
            ("machine acme.io login ann password ", "\n"),
        ] {
            let missed = (0..200)
                .filter(|_| {
                    let value = chance.value(len);
                    redactor.redact(&format!("{before}{value}{after}")).contains(&value)
                })
                .count();
            assert!(missed <= 3, "{before:?}, {len} characters: {missed} of 200 missed");
        }
    }
}

#[test]
fn a_token_of_hex_digits_is_known() {
    let redactor = Redactor::default();
    let mut chance = Chance(4711);
    for len in [20, 32, 40, 64] {
        let missed = (0..200).filter(|_| {
            let value: String =
                chance.value(len).bytes().map(|it| format!("{:x}", it % 16)).collect();
            redactor.redact(&format!("token={value}\n")).contains(&value)
        });
        let missed = missed.count();
        assert!(missed <= 3, "{len} digits: {missed} of 200 missed");
    }
}

#[test]
fn a_token_that_is_made_of_words_is_known_by_its_variable() {
    let redactor = Redactor::default();
    for text in ["DEPLOY_TOKEN=hunter2hunter2", "export ACME_TOKEN='correct7horse'"] {
        assert!(redactor.redact(text).contains("[redacted:assigned-secret]"), "{text}");
    }
}

#[test]
fn code_and_prose_about_tokens_is_left_alone() {
    let redactor = Redactor::default();
    for text in [
        "let token = self.next_token2()?;",
        "let token = tokens[i1];",
        "token: Token,",
        "token: &'a str,",
        "token: TokenKind::Ident2,",
        "token: TokenType.Utf8String,",
        "token=None, token2=None",
        "if token == Token::Eof1 { return }",
        "const token = await getToken2(user);",
        "const token = req.headers2.authorization;",
        "the token: a string of 20 characters",
        "GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN2 }}",
        "GITHUB_TOKEN=$GH_TOKEN2",
        "token = \"<your-token-1>\"",
        "token = 'YOUR_TOKEN_HERE_1'",
        "max_tokens: 4096, token_count: 128000",
        "credentials: \"same-origin\"",
        "ClientSecret => \"CLIENT_TRAFFIC_SECRET_0\",",
        "secret_name = \"my-app\"",
        "https://docs.rs/serde_json/latest/serde_json/@version",
        "https://example.com/?key=value&sort=name",
        "curl -u \"$USER:$PASSWORD\" https://example.com",
        "curl -L https://example.com:8080/x -o y",
        "curl -sSfLu \"$USER:$PASSWORD\" https://example.com",
        "<password>${env.PASSWORD_1}</password>",
        "<token>The token that you got</token>",
        "set -gx EDITOR_PATH /usr/bin/vim9",
        "checksum = \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"",
        "\"integrity\": \"sha512-q1Vw2PnTgWk5cKQ8lQw0bGxQ9mF2sH7rP3kZ6yT4vB8nD0aE5uJ1iL9oX2cR7fG==\"",
        "deploy --token \"$TOKEN\" --api-key ${API_KEY_1}",
        "x --token <your-token-1> --secret-file2 ./x",
        "the bearer authentication2 scheme",
        "Bearer realm=\"example\"",
        "Cookie: string; // the header of 2 names",
        "ENV NODE_VERSION 20.11.0",
        "ENV CACHE_KEY_PREFIX build1234",
        "PRIMARY_KEY: \"customer_id\", SORT_KEY = created_at_utc1",
        "STORAGE_KEY = \"my-app-settings-v2\"",
        "PUBLIC_KEY=./keys/id_ed25519.pub",
        "pwd=/home/ann2/project, PWD=$(pwd)",
        "docker login -u ann --password-stdin registry.example.com",
        "docker run -p 8080:80 app && docker login",
        "https://example.com/?sig=newest&page=2",
        "hvs.describe, r8_register, hf_transformers, fw_update",
    ] {
        assert!(matches!(redactor.redact(text), Cow::Borrowed(_)), "{}", redactor.redact(text));
    }
}

/// Forms in which a password of letters alone is recognised, because only shells and environment
/// files use them.
const LETTERS: [(&str, bool); 16] = [
    ("DB_PASSWORD=@\n", true),
    ("DB_PASS=@ ./run", true),
    ("PASS=@", true),
    ("MYSQL_PWD='@' mysql shop", true),
    ("docker run -e POSTGRES_PASSWORD=@ postgres", true),
    ("- ADMIN_PASSWORD=@\r\n", true),
    ("user=ann\npassword=@\nhost=db\n", true),
    ("export client_secret=@", true),
    ("DEPLOY_TOKEN=@@\n", true),
    ("password=@, user=ann", false),
    ("password: @\n", false),
    ("connect(password=@)", false),
    ("PASSWORD = @\n", false),
    ("PASSWORD=@(user)", false),
    ("PASSWORD == @", false),
    ("the password is @\n", false),
];

#[test]
fn a_password_of_letters_alone_is_known_where_only_a_value_can_stand() {
    let redactor = Redactor::default();
    for (place, is_found) in LETTERS {
        let secret = "correcthorse";
        let text = place.replace('@', secret);
        assert_eq!(!redactor.redact(&text).contains(secret), is_found, "{text}");
    }
    for text in [
        "PASSWORD=password\n",
        "DB_PASSWORD=changeme\n",
        "API_SECRET=yoursecret\n",
        "password=userPassword\n",
        "MYSQL_ALLOW_EMPTY_PASSWORD=yes\n",
        "TOKEN=parser.next()\n",
        "PASSWORD=os.environ\n",
        "PASSWORD=None\n",
        "PASS: everything_is_fine2",
    ] {
        assert!(matches!(redactor.redact(text), Cow::Borrowed(_)), "{}", redactor.redact(text));
    }
}

#[test]
fn the_rules_are_compiled_when_the_first_text_comes_and_what_was_taken_is_counted() {
    let redactor = Redactor::new(["a-key-of-the-user".to_owned()]);
    assert_eq!(redactor.taken(), 0);
    assert_eq!(redactor.clone().redact("x a-key-of-the-user"), "x [redacted:provider-key]");
    assert_eq!(redactor.redact("nothing"), "nothing");
    let shown = redactor.with_own_count();
    assert_eq!(shown.redact("y a-key-of-the-user"), "y [redacted:provider-key]");
    assert_eq!((redactor.taken(), shown.taken()), (1, 1));
}

#[test]
fn json_stays_json() {
    let redactor = Redactor::default();
    let json = format!("{{ \"n\": 1e2, \"deploy_token\": \"{}\" }}", token(20));
    let redacted = redactor.redact_json(&json).unwrap();
    assert_eq!(redacted, "{ \"n\": 1e2, \"deploy_token\": \"[redacted:assigned-secret]\" }");
    assert_eq!(redactor.redact_json("{\"a\": \"b\"}"), None);
}

/// Places where people and programs write keys. `@` is the key.
const PLACES: [&str; 12] = [
    "OPENAI_KEY=@\n",
    "export KEY='@'\n",
    "key: @\n",
    "{\"key\": \"@\", \"n\": 1}",
    "{\\\"key\\\": \\\"@\\\"}",
    "Authorization: Bearer @\r\n",
    "ENV KEY @\n",
    "client = Client(\"@\")",
    "2026-11-16T09:00:00Z ERROR refused @ (401)",
    "| prod | @ |",
    "https://example.com/v1?x=1&k=@&y=2",
    "my key is @, keep it",
];

/// Places of passwords without a shape; the last ones do not identify them.
const PASSWORDS: [(&str, bool); 31] = [
    ("vercel --token @", true),
    ("tool --api-key @ list", true),
    ("ENV NPM_TOKEN @\n", true),
    ("SECRET_KEY_BASE=@\n", true),
    ("STRIPE_KEY=@\n", true),
    ("GH_PAT=@\n", true),
    ("Uid=app;Pwd=@;", true),
    ("Cookie: session=@\r\n", true),
    ("docker login -p @ registry.example.com", true),
    ("password = \"@\"", true),
    ("DB_PASSWORD=@\n", true),
    ("DB_PASS=@\n", true),
    ("MYSQL_PWD=@ mysql shop", true),
    ("password: '@'", true),
    ("{\"client_secret\": \"@\"}", true),
    ("export GITHUB_TOKEN=@\n", true),
    ("api_key => \"@\"", true),
    ("X-Api-Key: @\r\n", true),
    ("Authorization: Basic @\r\n", true),
    ("postgres://app:@@db:5432/x", true),
    ("curl -u admin:@ https://example.com", true),
    ("wget --password=@ https://example.com", true),
    ("https://example.com/?access_token=@", true),
    ("aws_secret_access_key = @@", true),
    ("//registry.example.com/:_authToken=@\n", true),
    ("the password is @", false),
    ("mysql -p@ shop", true),
    ("sshpass -p @ ssh host", true),
    ("login bob @", false),
    ("host,user,@", false),
    ("pin: @", false),
];

/// docs/run.md quotes these figures.
#[test]
fn of_a_corpus_of_our_own_it_is_known_what_is_found_and_what_is_missed() {
    let redactor = Redactor::default();
    let keys = [
        format!("ghp_{}", token(36)),
        format!("github_pat_{}", token(82)),
        format!("glpat-{}", token(20)),
        format!("xoxb-{}-{}", hex(12), token(24)),
        format!("sk_live_{}", token(24)),
        format!("sk-ant-api03-{}-AA", token(90)),
        format!("sk-or-v1-{}", hex(64)),
        format!("sk-proj-{}", token(48)),
        format!("gsk_{}", token(52)),
        format!("xai-{}", token(80)),
        format!("hf_{}", letters(34)),
        format!("r8_{}", token(37)),
        format!("pplx-{}", token(48)),
        format!("AIza{}", token(35)),
        format!("ya29.{}", token(60)),
        format!("npm_{}", token(36)),
        format!("pypi-{}", token(160)),
        format!("SG.{}.{}", token(22), token(43)),
        format!("hvs.{}", token(90)),
        format!("dop_v1_{}", hex(64)),
        format!("shpat_{}", hex(32)),
        format!("dckr_pat_{}", token(27)),
        format!("AKIA{}", upper(16)),
        format!("AGE-SECRET-KEY-1{}", upper(58)),
        format!("eyJ{}.eyJ{}.{}", token(20), token(40), token(43)),
    ];
    let mut missed = Vec::new();
    for key in &keys {
        for place in PLACES {
            let text = place.replace('@', key);
            if redactor.redact(&text).contains(&key[8..]) {
                missed.push(text);
            }
        }
    }
    assert_eq!((keys.len() * PLACES.len(), missed), (300, Vec::<String>::new()));
    for (place, is_found) in PASSWORDS {
        let secret = token(if place.starts_with("aws") { 20 } else { 18 });
        let text = place.replace("@@db", "\0").replace('@', &secret);
        let text = text.replace('\0', &format!("{secret}@db"));
        assert_eq!(!redactor.redact(&text).contains(&secret), is_found, "{text}");
    }
}

#[test]
fn what_only_resembles_a_file_with_secrets_is_left_alone() {
    let redactor = Redactor::default();
    let address = format!("{}a", "3dE5gH7jK9mN1pQ2rS4tU6vW8xYaB".repeat(2));
    for text in [
        // Base64 of a text without a colon, of a certificate, and of prose.
        "{\"auths\":{\"ghcr.io\":{\"auth\":\"aGVsbG8gd29ybGQ=\"}}}",
        "client-certificate-data: CERT\n",
        "it says PROSE.",
        "client-key: /etc/kubernetes/pki/ann1.key",
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  host: db1.example.com\n",
        "apiVersion: v1\nkind: SecretStore\ndata:\n  host: db1.example.com\n",
        "the kind: secret ones\ndata:\n  host: db1.example.com\n",
        "db.example.com:5432/shop, 127.0.0.1:5432:\nready",
        "Address6.fromWildcard('2001:db8:*:*:*:*:*:*')",
        "define('DB_HOST', 'localhost1');",
        "define('DB_PASSWORD', getenv('DB_PASSWORD_1'));",
        "define('AUTH_KEY', 'put your unique phrase here');",
        "arn:aws:logs:*:*:log-group:/aws/lambda/f1:*, src/*:*:all",
        "127.0.0.1:5432: connection refused: error: code1",
        "fe80:*:*:*:*:ab12",
        "define('LABEL_PASSWORD', 'Password');",
        "pass: 'everything', pwd = \"/home/ann2\", pass = \"${PASS_1}\"",
        "SSWS is the scheme of 1 vendor",
        "oy2abc123, en-us12, 0123456789abcdef-us1",
        "MTIzNDU2.abc.def ndarray.linalg.norm1",
        "htpasswd -c .htpasswd ann",
        "htpasswd -b .htpasswd ann \"$PASSWORD_1\"",
        "<add key=\"ClearTextPassword\" value=\"%NUGET_PASSWORD%\" />",
        "password = \"secret\"; password: 'abc'; passwd=\"%s\"; password = \"{0}\"",
        "arn:aws:secretsmanager:us-west-2:123456789012:secret:MyDatabaseSecret-a1b2c3",
        "pub const NET_TOKEN: _bindgen_ty_7 = _bindgen_ty_7::NET_TOKEN;",
        "mongodb://${user}:${password1}@${host}",
        &format!("Kx{address}"),
    ] {
        let text = text.replace("CERT", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJzekNDQVZtZ0F3SUJBZ0lVUW05bmRYTWdZMlZ5ZEdsbWFXTmhkR1UKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=");
        let text =
            text.replace("PROSE", "c2stIGFuZCBtb3JlIHdvcmRzLCBub25lIG9mIHdoaWNoIGlzIGEga2V5");
        assert!(matches!(redactor.redact(&text), Cow::Borrowed(_)), "{}", redactor.redact(&text));
    }
}
