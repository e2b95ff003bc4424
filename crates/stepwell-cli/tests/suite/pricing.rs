//! What models cost, and what sessions may have cost.

use stepwell::Message;
use stepwell::model::Usage;

use crate::running::one;
use crate::test_env::TestEnv;

fn price(env: &TestEnv, model: &str) -> serde_json::Value {
    let lines = env.quietly(&["models", "prices", model, "--json"]).json();
    lines.into_iter().find(|line| line["model"] == model).unwrap_or_default()
}

/// A list with one model, made on a day.
fn list(made: &str, input: &str) -> String {
    let source = r#"{"name":"s","version":"1","gives":"prices","licence":"MIT"}"#;
    let model = format!(r#"{{"gpt-4.1":{{"price":["{input}","9"],"context":7000}}}}"#);
    format!(r#"{{"about":"","made":"{made}","sources":[{source}],"models":{{"openai":{model}}}}}"#)
}

#[test]
fn prices_are_shown_and_the_users_own_go_first() {
    let env = TestEnv::new();
    let known = price(&env, "openai/gpt-4.1");
    assert_eq!((&known["input_usd"], &known["output_usd"]), (&2.into(), &8.into()));
    assert!(known["context"].as_u64().unwrap() > 1_000_000 && known["as_of"].is_string());
    let long = price(&env, "gemini/gemini-2.5-pro");
    assert_eq!(long["long"][0]["over"], 200_000);
    let folder = env.path("home/.config/stepwell");
    std::fs::create_dir_all(&folder).unwrap();
    let own = "[prices.\"openai/gpt-4.1\"]\ninput = \"1\"\n[prices.\"local/x\"]\ninput = \"1\"\noutput = \"2\"\n";
    std::fs::write(folder.join("config.toml"), own).unwrap();
    let changed = price(&env, "openai/gpt-4.1");
    assert_eq!((&changed["input_usd"], &changed["output_usd"]), (&1.into(), &8.into()));
    assert!(changed["as_of"].is_null());
    let shown = env.quietly(&["models", "prices"]);
    assert!(shown.stdout.contains("local/x") && shown.stdout.contains("yours"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("openrouter/"), "{}", shown.stdout);
    assert!(
        shown.stderr.contains("genai-prices") && shown.stderr.contains("more"),
        "{}",
        shown.stderr
    );
}

#[test]
fn a_newer_list_is_taken_and_an_older_one_is_not_used() {
    let env = TestEnv::new();
    env.file("new.json", &list("2999-01-01", "7"));
    env.file("old.json", &list("2020-01-01", "6"));
    env.file("none.json", "{\"prices\": 1}");
    let taken = one(&env, &["models", "prices", "--update", "new.json"], 0);
    assert_eq!(taken["made"], "2999-01-01");
    assert_eq!(price(&env, "openai/gpt-4.1")["input_usd"], 7);
    let refused = env.quietly(&["models", "prices", "--update", "none.json"]);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert_eq!(price(&env, "openai/gpt-4.1")["input_usd"], 7);
    let old = env.quietly(&["models", "prices", "--update", "old.json"]);
    assert!(old.stderr.contains("newer"), "{}", old.stderr);
    assert_eq!(price(&env, "openai/gpt-4.1")["input_usd"], 2);
}

#[test]
fn what_a_session_may_have_cost_is_told_apart_from_what_it_did() {
    let env = TestEnv::new();
    let well = env.well();
    let usage = Usage { input: 100_000, output: 50_000, ..Usage::default() };
    for (model, cost) in [("gpt-4.1", None), ("nobody-knows", None), ("gpt-4.1", Some("0.3"))] {
        let session = well.create(well.draft(model).with_model("openai", model)).unwrap();
        let cost = cost.map(|cost: &str| cost.parse().unwrap());
        session.append(Message::assistant("done").spending(usage, cost)).unwrap();
        session.finish(stepwell::Status::Success, None).unwrap();
    }
    drop(well);
    // 100,000 at $2 and 50,000 at $8 per million.
    let shown = env.quietly(&["sessions", "--all"]).stdout;
    for cost in [" ~$0.60 ", " ? ", " $0.3000 "] {
        assert!(shown.contains(cost), "{cost} in {shown}");
    }
    for cost in [" ~$0.60 ", " ? ", " $0.3000 "] {
        let ledger = env.quietly(&["ledger"]).stdout;
        assert!(ledger.contains(cost), "{cost} in {ledger}");
    }
    let rows = env.quietly(&["ledger", "--json"]).json();
    let guessed: Vec<_> = rows.iter().filter(|it| !it["estimated_cost_usd"].is_null()).collect();
    assert_eq!(guessed.len(), 1, "{rows:?}");
    assert_eq!((&guessed[0]["estimated_cost_usd"], &guessed[0]["cost"]), (&0.6.into(), &0.into()));
    let shown = one(&env, &["show", guessed[0]["id"].as_str().unwrap()], 0);
    assert_eq!((&shown["estimated_cost_usd"], &shown["cost"]), (&0.6.into(), &0.into()));
    let lines = env.quietly(&["sessions", "--all", "--json"]).json();
    let guessed: Vec<_> = lines.iter().filter(|it| !it["estimated_cost_usd"].is_null()).collect();
    assert_eq!(guessed.len(), 1, "{lines:?}");
    assert_eq!(guessed[0]["estimated_cost_usd"], 0.6);
    let id = guessed[0]["id"].as_str().unwrap();
    let described = env.quietly(&["show", id]).stdout;
    assert!(described.contains("~$0.60"), "{described}");
    let page = env.quietly(&["export", id, "--format", "markdown"]).stdout;
    assert!(page.contains("| cost | \\~$0.60 |"), "{page}");
    let page = env.quietly(&["export", id, "--format", "html"]).stdout;
    assert!(page.contains("<tr><th>cost</th><td>~$0.60</td></tr>"), "{page}");
    // No sum has it: it stands beside what was recorded.
    let all = env.quietly(&["stats"]).stdout;
    assert!(!all.contains("0.9") && all.contains("~$0.6000"), "{all}");
    assert!(
        all.contains("(~: estimated for 1 session by tokens; ?: 1 session without a known price)"),
        "{all}"
    );
    let all = one(&env, &["stats"], 0);
    assert_eq!((&all["estimated_cost_usd"], &all["unpriced_sessions"]), (&0.6.into(), &1.into()));
}

#[test]
fn a_subagents_tokens_are_estimated_at_its_own_models_price() {
    let env = TestEnv::new();
    let well = env.well();
    let usage = Usage { input: 100_000, output: 50_000, ..Usage::default() };
    let parent = well.create(well.draft("lead").with_model("openai", "gpt-4.1")).unwrap();
    let child = parent.spawn(well.draft("look").with_model("openai", "gpt-4.1-mini")).unwrap();
    for session in [child, parent] {
        session.append(Message::assistant("done").spending(usage, None)).unwrap();
        session.finish(stepwell::Status::Success, None).unwrap();
    }
    drop(well);
    // 100,000 at $2 and 50,000 at $8 per million; of the smaller model at $0.40 and $1.60.
    let shown = env.quietly(&["sessions"]).stdout;
    assert!(shown.contains(" ~$0.72 "), "{shown}");
}

#[test]
fn after_a_resume_an_imported_sessions_estimate_stands_beside_what_was_recorded() {
    let env = crate::foreign::agents();
    assert_eq!(env.quietly(&["import", "--yes"]).code, Some(0));
    let id = "0196a3f0-4b1d-7a52-8c3e-6d0f9e2b7a11";
    let estimate = |env: &TestEnv| {
        let shown = one(env, &["show", id], 0);
        (shown["estimated_cost_usd"].clone(), shown["cost"].clone(), shown["provider"].clone())
    };
    let (guessed, cost, provider) = estimate(&env);
    assert!(guessed.as_f64().unwrap() > 0.0 && cost == 0 && provider == "openai");
    let script = "prices: {input: '1000', output: '1000'}\nanswers:\n".to_owned()
        + &"- {text: Done., usage: {input: 10, output: 5}}\n".repeat(9);
    env.file("script.yaml", &script);
    let ran = env.quietly(&["resume", id, "go on", "--model", "script:script.yaml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // By the model that it had there, though another one goes on; and whose that is, is said.
    let (still, cost, provider) = estimate(&env);
    assert_eq!((still, provider), (guessed, "script".into()));
    assert!(cost.as_f64().unwrap() > 0.0, "{cost}");
    let listed = env.quietly(&["sessions", "--all"]).stdout;
    let line = listed.lines().find(|line| line.contains(id)).unwrap();
    assert!(line.contains("$0.0150 + ~$"), "{line}");
    let described = env.quietly(&["show", id]).stdout;
    assert!(described.contains(" of script\n") && described.contains("+ ~$"), "{described}");
    assert_eq!(env.quietly(&["verify", id]).code, Some(0));
}

#[test]
fn a_run_that_resumes_an_estimated_import_tells_recorded_cost_and_estimate_apart() {
    let env = crate::foreign::agents();
    assert_eq!(env.quietly(&["import", "--yes"]).code, Some(0));
    let id = "0196a3f0-4b1d-7a52-8c3e-6d0f9e2b7a11";
    let script = "prices: {input: '1000', output: '1000'}\nanswers:\n".to_owned()
        + &"- {text: Done., usage: {input: 10, output: 5}}\n".repeat(9);
    env.file("script.yaml", &script);
    let go_on = ["resume", id, "go on", "--model", "script:script.yaml"];
    let ran = env.quietly(&go_on);
    assert!(ran.stderr.contains(" tokens, $0.0150 + ~$"), "{}", ran.stderr);
    let costs = one(&env, &go_on, 0)["costs"].clone();
    assert_eq!(costs["total_cost_usd"], serde_json::Value::Null, "nobody knows all of it");
    assert_eq!(costs["recorded_cost_usd"].to_string(), "0.03");
    let shown = one(&env, &["show", id], 0);
    assert_eq!(costs["estimated_cost_usd"], shown["estimated_cost_usd"]);
    assert!(costs["estimated_cost_usd"].as_f64().unwrap() > 0.0, "{costs}");
}
