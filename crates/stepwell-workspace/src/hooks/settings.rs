//! Claude Code's settings: our hooks' entries in them, and everything else left as its
//! owner wrote it.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A settings file whose entries keep their order and their text.
#[derive(Debug)]
pub struct Settings {
    top: Entries,
}

/// Nothing had to be changed.
#[derive(Debug, PartialEq, Eq)]
pub struct Unchanged;

/// An object's entries, in order, as they were written.
#[derive(Debug, Default)]
struct Entries(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Entries;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        from.deserialize_map(Reader)
    }
}

impl Entries {
    fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// Gives an entry a value in its place, or behind all others; none takes it away.
    fn set(&mut self, name: &str, text: Option<String>) -> Result<(), serde_json::Error> {
        let value = text.map(RawValue::from_string).transpose()?;
        let place = self.0.iter().position(|(key, _)| key == name);
        match (place, value) {
            (Some(place), Some(value)) => self.0[place].1 = value,
            (Some(place), None) => {
                self.0.remove(place);
            }
            (None, Some(value)) => self.0.push((name.to_owned(), value)),
            (None, None) => {}
        }
        Ok(())
    }

    /// The object as text, its own entries one per line.
    fn text(&self, indent: &str) -> String {
        if self.0.is_empty() {
            return "{}".to_owned();
        }
        let lines = self.0.iter().map(|(key, value)| {
            let key = Value::from(key.as_str());
            format!("{indent}  {key}: {}", value.get())
        });
        format!("{{\n{}\n{indent}}}", lines.collect::<Vec<_>>().join(",\n"))
    }
}

/// The events that our hooks answer: the event, which tools it is about, the command.
const HOOKS: &[(&str, Option<&str>, &str)] = &[
    ("PreToolUse", Some("Task|Agent"), "stepwell hook pre-delegate"),
    ("SubagentStop", None, "stepwell hook subagent-stop"),
];

impl Settings {
    /// Reads a settings file's text; an empty one has no settings.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        let text = if text.trim().is_empty() { "{}" } else { text };
        let top: Entries = serde_json::from_str(text)?;
        // What is there must be of the shape that we add to.
        top.get("hooks").map(|hooks| serde_json::from_str::<Entries>(hooks.get())).transpose()?;
        Ok(Self { top })
    }

    fn hooks(&self) -> Result<Entries, serde_json::Error> {
        let hooks = self.top.get("hooks");
        hooks.map_or(Ok(Entries::default()), |hooks| serde_json::from_str(hooks.get()))
    }

    /// Which of our hooks are in it?
    pub fn installed(&self) -> Result<Vec<&'static str>, serde_json::Error> {
        let hooks = self.hooks()?;
        let mut found = Vec::new();
        for (event, _, command) in HOOKS {
            if matchers(&hooks, event)?.iter().any(|matcher| is_ours(matcher, command)) {
                found.push(*command);
            }
        }
        Ok(found)
    }

    /// Adds our entries behind those that are there.
    pub fn install(&mut self) -> Result<Result<(), Unchanged>, serde_json::Error> {
        let mut hooks = self.hooks()?;
        let mut changed = false;
        for (event, tools, command) in HOOKS {
            let mut matchers = matchers(&hooks, event)?;
            if matchers.iter().any(|matcher| is_ours(matcher, command)) {
                continue;
            }
            // Claude Code waits so many seconds at most; we answer in milliseconds.
            let run = json!([{ "type": "command", "command": command, "timeout": 30 }]);
            let entry = match tools {
                Some(tools) => json!({ "matcher": tools, "hooks": run }),
                None => json!({ "hooks": run }),
            };
            matchers.push(RawValue::from_string(entry.to_string())?);
            hooks.set(event, Some(list(&matchers)))?;
            changed = true;
        }
        self.put_back(&hooks, changed)
    }

    /// Takes our entries out, and what they leave empty.
    pub fn uninstall(&mut self) -> Result<Result<(), Unchanged>, serde_json::Error> {
        let mut hooks = self.hooks()?;
        let mut changed = false;
        for (event, _, command) in HOOKS {
            let all = matchers(&hooks, event)?;
            let kept: Vec<_> = all.iter().filter_map(|it| without(it, command)).collect();
            let touched = kept.len() != all.len()
                || kept.iter().zip(&all).any(|(kept, old)| kept.get() != old.get());
            if touched {
                hooks.set(event, Some(list(&kept)).filter(|_| !kept.is_empty()))?;
                changed = true;
            }
        }
        self.put_back(&hooks, changed)
    }

    fn put_back(
        &mut self,
        hooks: &Entries,
        changed: bool,
    ) -> Result<Result<(), Unchanged>, serde_json::Error> {
        if !changed {
            return Ok(Err(Unchanged));
        }
        let text = Some(hooks.text("  ")).filter(|_| !hooks.0.is_empty());
        self.top.set("hooks", text)?;
        Ok(Ok(()))
    }

    /// The file's text.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}\n", self.top.text(""))
    }
}

fn matchers(hooks: &Entries, event: &str) -> Result<Vec<Box<RawValue>>, serde_json::Error> {
    hooks.get(event).map_or(Ok(Vec::new()), |list| serde_json::from_str(list.get()))
}

fn list(matchers: &[Box<RawValue>]) -> String {
    let lines: Vec<_> = matchers.iter().map(|it| format!("      {}", it.get())).collect();
    format!("[\n{}\n    ]", lines.join(",\n"))
}

/// Does one of a matcher's hooks run our command?
fn is_ours(matcher: &RawValue, command: &str) -> bool {
    runs(matcher).iter().any(|hook| is_command(hook, command))
}

fn runs(matcher: &RawValue) -> Vec<Value> {
    let matcher: Value = serde_json::from_str(matcher.get()).unwrap_or_default();
    matcher["hooks"].as_array().cloned().unwrap_or_default()
}

/// Is it our command, by its name or by a path to it, with options or without?
fn is_command(hook: &Value, command: &str) -> bool {
    let Some(line) = hook["command"].as_str() else { return false };
    let line = line.trim();
    // A path with spaces in it is quoted.
    let program = match line.chars().next() {
        Some(quote @ ('"' | '\'')) => line[1..].split(quote).next().unwrap_or_default(),
        _ => line.split_whitespace().next().unwrap_or_default(),
    };
    let is_stepwell = program.rsplit('/').next() == Some("stepwell");
    let rest = command.trim_start_matches("stepwell");
    is_stepwell && line.contains(rest)
}

/// A matcher without our hook; nothing, if that was all it had.
fn without(matcher: &RawValue, command: &str) -> Option<Box<RawValue>> {
    if !is_ours(matcher, command) {
        return Some(matcher.to_owned());
    }
    let kept: Vec<Value> =
        runs(matcher).into_iter().filter(|hook| !is_command(hook, command)).collect();
    if kept.is_empty() {
        return None;
    }
    let mut entries: Entries = serde_json::from_str(matcher.get()).ok()?;
    entries.set("hooks", Some(Value::from(kept).to_string())).ok()?;
    RawValue::from_string(entries.text("      ")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEIRS: &str = r#"{
  "model": "opus",
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash",   "hooks": [{"type": "command", "command": "lint"}]}
    ],
    "Stop": [ {"hooks": [{"type": "command", "command": "say done"}]} ]
  },
  "zeta": {"b": 1, "a": [1.0,   2]},
  "alpha": true
}
"#;

    #[test]
    fn installing_keeps_what_is_there_in_its_order() {
        let mut settings = Settings::read(THEIRS).unwrap();
        assert!(settings.installed().unwrap().is_empty());
        settings.install().unwrap().unwrap();
        let text = settings.text();
        for kept in [
            r#"{"matcher": "Bash",   "hooks": [{"type": "command", "command": "lint"}]}"#,
            r#""zeta": {"b": 1, "a": [1.0,   2]}"#,
            "say done",
        ] {
            assert!(text.contains(kept), "{text}");
        }
        assert!(text.find("model").unwrap() < text.find("hooks").unwrap());
        assert!(text.find("zeta").unwrap() < text.find("alpha").unwrap());
        let mut again = Settings::read(&text).unwrap();
        assert_eq!(again.installed().unwrap().len(), 2);
        assert_eq!(again.install().unwrap(), Err(Unchanged));
        assert_eq!(again.text(), text);
    }

    #[test]
    fn uninstalling_takes_out_what_installing_added() {
        let before: Value = serde_json::from_str(THEIRS).unwrap();
        let mut settings = Settings::read(THEIRS).unwrap();
        settings.install().unwrap().unwrap();
        let mut settings = Settings::read(&settings.text()).unwrap();
        settings.uninstall().unwrap().unwrap();
        let after: Value = serde_json::from_str(&settings.text()).unwrap();
        assert_eq!(after, before);
        assert_eq!(settings.uninstall().unwrap(), Err(Unchanged));
        let mut fresh = Settings::read("").unwrap();
        fresh.install().unwrap().unwrap();
        fresh.uninstall().unwrap().unwrap();
        assert_eq!(fresh.text(), "{}\n");
    }

    #[test]
    fn a_hook_beside_ours_stays() {
        let shared = r#"{"hooks":{"SubagentStop":[{"hooks":[
            {"type":"command","command":"/opt/stepwell -v hook subagent-stop"},
            {"type":"command","command":"mine"}]}]}}"#;
        let mut settings = Settings::read(shared).unwrap();
        assert_eq!(settings.installed().unwrap(), ["stepwell hook subagent-stop"]);
        settings.uninstall().unwrap().unwrap();
        let after: Value = serde_json::from_str(&settings.text()).unwrap();
        let hooks = &after["hooks"]["SubagentStop"][0]["hooks"];
        assert_eq!(*hooks, json!([{ "type": "command", "command": "mine" }]));
    }

    #[test]
    fn what_is_no_settings_file_is_refused() {
        for wrong in ["[]", "{", "{\"hooks\": []}", "{\"hooks\": {\"PreToolUse\": {}}}", "// x\n{}"]
        {
            let refused = Settings::read(wrong).and_then(|mut settings| settings.install());
            assert!(refused.is_err(), "{wrong}");
        }
    }
}
