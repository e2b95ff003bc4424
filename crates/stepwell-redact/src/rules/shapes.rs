//! Rules for secrets with a documented shape.

use super::{Before, Rule, Value, certain, prefix, word};

pub(super) const RULES: &[Rule] = &[
    certain(
        "private-key",
        &["-----BEGIN "],
        concat!(
            r"(-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-{1,4}[^-])*?",
            r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----",
            // Truncated at its end.
            r"|-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----",
            r"(?:(?:\s|\\+[nr])*(?:Proc-Type|DEK-Info|Version|Comment):[^\r\n\\]*)*",
            r"(?:(?:\s|\\+[nr])*[A-Za-z0-9+/=]{20,})*",
            // The last line, unless it is a word.
            r"(?:(?:\s|\\+[nr])*[A-Za-z0-9+/][a-z]*[A-Z0-9+/][A-Za-z0-9+/]*={0,2})?)",
        ),
    ),
    // Truncated at its beginning.
    Rule {
        before: Before::Run(is_of_key_lines),
        ..certain(
            "private-key",
            &["-----END "],
            concat!(
                r"(?:\\u[0-9a-f]{4}|\\.|[A-Za-z0-9+/=\r\n])*?((?:[A-Za-z0-9+/]+={0,2}(?:\r?\n|\\n))+",
                r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)",
            ),
        )
    },
    certain(
        "aws-access-key-id",
        &["AKIA", "ASIA", "ABIA", "ACCA"],
        r"((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})",
    ),
    certain(
        "github-token",
        &["gho_", "ghp_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"(gh[opusr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})",
    ),
    certain(
        "gitlab-token",
        &[
            "glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glsoat-", "glagent-", "glffct-",
            "glimt-", "gloas-", "glwt-",
        ],
        r"(gl(?:pat|ptt|dt|rt|cbt|soat|agent|ffct|imt|oas|wt)-[A-Za-z0-9_.-]{20,})",
    ),
    certain(
        "slack-token",
        &[
            "xoxa-",
            "xoxb-",
            "xoxc-",
            "xoxd-",
            "xoxe-",
            "xoxo-",
            "xoxp-",
            "xoxr-",
            "xoxs-",
            "xapp-",
            "hooks.slack.com/services",
            "hooks.slack.com\\/services",
            "hooks.slack.com%2Fservices",
        ],
        concat!(
            r"(xox[a-eoprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}",
            r"|hooks\.slack\.com(?:\\?/|%2[Ff])services(?:\\?/|%2[Ff])",
            r"(?:[A-Za-z0-9_]|\\?/|%2[Ff]){20,})",
        ),
    ),
    certain(
        "stripe-key",
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"],
        r"((?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{32,})",
    ),
    certain("anthropic-key", &["sk-ant-"], r"(sk-ant-[A-Za-z0-9_-]{20,})"),
    certain("openrouter-key", &["sk-or-"], r"(sk-or-(?:v[0-9]+-)?[A-Za-z0-9]{32,})"),
    certain(
        "openai-key",
        &["sk-proj-", "sk-svcacct-", "sk-admin-"],
        r"(sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,})",
    ),
    prefix("openai-key", &["sk-"], r"(sk-[A-Za-z0-9]{20,}[A-Za-z0-9_-]*)"),
    // Keys of other model providers.
    prefix("groq-key", &["gsk_"], r"(gsk_[A-Za-z0-9]{40,})"),
    prefix("xai-key", &["xai-"], r"(xai-[A-Za-z0-9]{60,})"),
    prefix("perplexity-key", &["pplx-"], r"(pplx-[A-Za-z0-9]{40,})"),
    prefix("replicate-token", &["r8_"], r"(r8_[A-Za-z0-9]{36,})"),
    prefix("huggingface-token", &["hf_", "api_org_"], r"((?:hf|api_org)_[A-Za-z0-9]{34,})"),
    prefix("fireworks-key", &["fw_"], r"(fw_[A-Za-z0-9]{22,})"),
    certain("google-key", &["AIza"], r"(AIza[A-Za-z0-9_-]{35})"),
    prefix("google-token", &["ya29.", "GOCSPX-"], r"((?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{20,})"),
    certain("npm-token", &["npm_"], r"(npm_[A-Za-z0-9]{36})"),
    certain("pypi-token", &["pypi-"], r"(pypi-[A-Za-z0-9_-]{50,})"),
    certain("sendgrid-key", &["SG."], r"(SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50})"),
    // Clouds, registries and shops.
    prefix("vault-token", &["hvs.", "hvb.", "hvr."], r"(hv[sbr]\.[A-Za-z0-9_-]{24,})"),
    Rule {
        before: Before::Run(|byte| byte.is_ascii_alphanumeric()),
        ..certain(
            "terraform-token",
            &[".atlasv1."],
            r"[A-Za-z0-9]*?([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,})",
        )
    },
    certain("digitalocean-token", &["doo_v1_", "dop_v1_", "dor_v1_"], r"(do[opr]_v1_[a-f0-9]{64})"),
    certain(
        "shopify-token",
        &["shpat_", "shpca_", "shppa_", "shpss_"],
        r"(shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32})",
    ),
    certain("docker-token", &["dckr_"], r"(dckr_(?:pat|oat)_[A-Za-z0-9_-]{24,})"),
    certain("age-key", &["AGE-SECRET-KEY-"], r"(AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{50,})"),
    certain("heroku-key", &["HRKU-"], r"(HRKU-[A-Za-z0-9_-]{30,})"),
    prefix(
        "fly-token",
        &["fm1_", "fm1a_", "fm1r_", "fm2_", "fo1_"],
        r"(fm(?:1[ar]?|2)_[A-Za-z0-9+/=_-]{40,}|fo1_[A-Za-z0-9_-]{40,})",
    ),
    word("nuget-key", &["oy2"], r"(oy2[a-z0-9]{43})"),
    // Push messages: a server's key, and the address of a device.
    Rule {
        before: Before::Run(is_of_base64_url),
        ..certain(
            "firebase-key",
            &[":APA91b"],
            r"[A-Za-z0-9_-]*?([A-Za-z0-9_-]{11,22}:APA91b[A-Za-z0-9_-]{100,})",
        )
    },
    Rule {
        before: Before::Run(|byte| byte.is_ascii_hexdigit()),
        ..certain("mailchimp-key", &["-us"], r"[0-9A-Fa-f]*?([0-9a-f]{32}-us[0-9]{1,2})")
    },
    // A Bitcoin private key in wallet format.
    word(
        "bitcoin-key",
        &["5H", "5J", "5K", "Kw", "Kx", "Ky", "Kz", "L1", "L2", "L3", "L4", "L5"],
        concat!(
            r"(5[HJK][1-9A-HJ-NP-Za-km-z]{49}(?-u:\b)",
            r"|(?:K[w-z]|L[1-5])[1-9A-HJ-NP-Za-km-z]{50}(?-u:\b))",
        ),
    ),
    word("bitcoin-key", &["xprv", "yprv", "zprv"], r"([xyz]prv[1-9A-HJ-NP-Za-km-z]{107,108})"),
    prefix(
        "doppler-token",
        &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
        r"(dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{30,})",
    ),
    prefix("figma-token", &["figd_"], r"(figd_[A-Za-z0-9_-]{30,})"),
    prefix("nvidia-key", &["nvapi-"], r"(nvapi-[A-Za-z0-9_-]{40,})"),
    prefix("tavily-key", &["tvly-"], r"(tvly-[A-Za-z0-9-]{24,})"),
    certain(
        "discord-webhook",
        &[
            "discord.com/api",
            "discord.com\\/api",
            "discord.com%2Fapi",
            "discordapp.com/api",
            "discordapp.com\\/api",
            "discordapp.com%2Fapi",
        ],
        concat!(
            r"(discord(?:app)?\.com(?:\\?/|%2[Ff])api(?:\\?/|%2[Ff])(?:v[0-9]+(?:\\?/|%2[Ff]))?",
            r"webhooks(?:\\?/|%2[Ff])[0-9]{15,}(?:\\?/|%2[Ff])[A-Za-z0-9_-]{40,})",
        ),
    ),
    word(
        "discord-token",
        // A bot's id in base64: its first three digits begin with one of these.
        &[
            "MTA", "MTE", "MTI", "MTM", "MTQ", "MTU", "MTY", "MTc", "MTg", "MTk", //
            "MjA", "MjE", "MjI", "MjM", "MjQ", "MjU", "MjY", "Mjc", "Mjg", "Mjk", //
            "MzA", "MzE", "MzI", "MzM", "MzQ", "MzU", "MzY", "Mzc", "Mzg", "Mzk", //
            "NDA", "NDE", "NDI", "NDM", "NDQ", "NDU", "NDY", "NDc", "NDg", "NDk", //
            "NTA", "NTE", "NTI", "NTM", "NTQ", "NTU", "NTY", "NTc", "NTg", "NTk", //
            "NjA", "NjE", "NjI", "NjM", "NjQ", "NjU", "NjY", "Njc", "Njg", "Njk", //
            "NzA", "NzE", "NzI", "NzM", "NzQ", "NzU", "NzY", "Nzc", "Nzg", "Nzk", //
            "ODA", "ODE", "ODI", "ODM", "ODQ", "ODU", "ODY", "ODc", "ODg", "ODk", //
            "OTA", "OTE", "OTI", "OTM", "OTQ", "OTU", "OTY", "OTc", "OTg", "OTk", //
            "mfa.",
        ],
        concat!(
            r"((?:M[Tjz]|N[DTjz]|O[DT])[AEIMQUYcgk][A-Za-z0-9_-]{19,27}\.[A-Za-z0-9_-]{6,7}",
            r"\.[A-Za-z0-9_-]{27,}|mfa\.[A-Za-z0-9_-]{80,})",
        ),
    ),
    word("databricks-token", &["dapi"], r"(dapi[a-f0-9]{32})"),
    certain("linear-key", &["lin_api_", "lin_oauth_"], r"(lin_(?:api|oauth)_[A-Za-z0-9]{32,})"),
    prefix("notion-token", &["ntn_", "secret_"], r"(ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})"),
    certain("new-relic-key", &["NRAK-"], r"(NRAK-[A-Z0-9]{27})"),
    certain("postman-key", &["PMAK-"], r"(PMAK-[a-f0-9]{24}-[a-f0-9]{34})"),
    prefix("pulumi-token", &["pul-"], r"(pul-[a-f0-9]{40})"),
    certain("planetscale-token", &["pscale_"], r"(pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_=.-]{32,})"),
    certain("sentry-token", &["sntrys_", "sntryu_"], r"(sntry[su]_[A-Za-z0-9+/=_-]{40,})"),
    certain("rubygems-key", &["rubygems_"], r"(rubygems_[a-f0-9]{48})"),
    prefix(
        "square-token",
        &["sq0atp-", "sq0csp-", "sq0idp-"],
        r"(sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,})",
    ),
    Rule {
        before: Before::Run(|byte| byte.is_ascii_digit()),
        ..certain("telegram-token", &[":AA"], r"[0-9]*?([0-9]{8,10}:AA[A-Za-z0-9_-]{33})")
    },
    certain("grafana-token", &["glc_", "glsa_"], r"(gl(?:c|sa)_[A-Za-z0-9_+/=]{32,})"),
    certain("tailscale-key", &["tskey-"], r"(tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{16,})"),
    prefix("supabase-key", &["sbp_", "sbs_"], r"(sb[ps]_[A-Za-z0-9_]{36,})"),
    certain("supabase-key", &["sb_secret_"], r"(sb_secret_[A-Za-z0-9_-]{20,})"),
    certain("atlassian-token", &["ATATT3", "ATCTT3"], r"(AT[AC]TT3[A-Za-z0-9_=-]{100,})"),
    word("cargo-token", &["cio"], r"(cio[A-Za-z0-9]{32})"),
    word("twilio-key", &["SK"], r"(SK[0-9a-fA-F]{32})"),
    Rule {
        before: Before::Run(is_of_base64_url),
        ..certain(
            "jwt",
            &[".eyJ"],
            // The signature may be truncated.
            r"[A-Za-z0-9_-]*?(eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?)",
        )
    },
    // One of the above in base64. These are further prefixes before encoding.
    Rule {
        values: &[Value::Encoded],
        ..word(
            "encoded-secret",
            &["eyJ", "AAAA", "FlyV1 ", "https://hooks.slack.com/", "https://discord"],
            r"([A-Za-z0-9+/_-]{20,}(?:\r?\n[A-Za-z0-9+/]{20,})*(?:\r?\n[A-Za-z0-9+/]{1,20})?={0,2})",
        )
    },
];

/// Can this byte be in a key's lines or line ends?
const fn is_of_key_lines(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\r' | b'\n' | b'\\')
}

const fn is_of_base64_url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}
