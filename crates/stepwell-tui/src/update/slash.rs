//! Slash commands: what each does here. Those that the command line has too are its commands.

use stepwell::SessionId;
use stepwell::model::{Mode, Money};
use stepwell_workspace::slash::{Group, Invocation, SLASH_COMMANDS, UnknownCommand, Verb};

use super::chat::KEYS;
use crate::clean::Clean;
use crate::effect::{Effect, PointsFor, Purpose, Visit};
use crate::helper::Helper;
use crate::page::{ChoicePage, Choosing, Content, Page};
use crate::session::Reach;
use crate::state::{Detach, State, Work};

impl State {
    pub(super) fn slash(&mut self, line: &str) -> Vec<Effect> {
        match Invocation::parse(line) {
            Ok(Invocation { command, arguments }) => match arguments.as_str() {
                "--help" | "-h" => {
                    self.help(command.name);
                    Vec::new()
                }
                typed if !typed.is_empty() && command.arguments.is_empty() => {
                    self.say_briefly(format!("/{} takes nothing behind it", command.name));
                    Vec::new()
                }
                typed => self.invoke(command.verb, typed),
            },
            Err(unknown) => {
                self.tell_unknown(&unknown);
                Vec::new()
            }
        }
    }

    fn tell_unknown(&mut self, unknown: &UnknownCommand) {
        let meant = unknown.nearest.map(|nearest| format!("; did you mean /{nearest}?"));
        let meant = meant.unwrap_or_else(|| "; /help lists them".to_owned());
        let why = format!("there is no command /{}{meant}", unknown.typed);
        self.trouble(&Clean::line(&why), None);
    }

    fn invoke(&mut self, verb: Verb, arguments: &str) -> Vec<Effect> {
        match verb {
            Verb::Help => self.help(arguments),
            Verb::New => return self.new_session(arguments),
            Verb::Stop if self.is_working() => return self.stop(),
            Verb::Stop if self.is_watching() => return self.stop_elsewhere(),
            Verb::Stop => self.say_briefly("nothing runs here"),
            Verb::Quit => return self.leave(),
            Verb::Detach => return self.detach(),
            Verb::Copy => return self.copy(arguments),
            Verb::Thinking => {
                self.thinking = !self.thinking;
                let now = if self.thinking { "shown" } else { "hidden" };
                self.say_briefly(format!("thinking is {now}"));
            }
            Verb::Continue => return self.go_on(),
            Verb::Later if self.asked().is_some() => return self.later(),
            Verb::Later => self.say_briefly("nothing is asked"),
            Verb::Discuss | Verb::Plan | Verb::Execute | Verb::Verify | Verb::Ship => {
                return self.phase_command(verb, arguments);
            }
            Verb::Flow => return self.start_flow(arguments),
            Verb::Agents => return self.show_helpers(),
            Verb::Agent if arguments.is_empty() => return vec![Effect::ListAgents],
            Verb::Resume if !arguments.is_empty() => return self.open(arguments),
            Verb::Resume | Verb::Sessions => return self.open_picker(Reach::Workspace, ""),
            Verb::Search => return self.open_picker(Reach::Workspace, arguments),
            Verb::Rewind if arguments.is_empty() => return self.open_points(PointsFor::Rewind),
            Verb::Timeline => return self.open_points(PointsFor::Timeline),
            Verb::Transcript => self.open_text("transcript", Content::Transcript),
            Verb::Model if arguments.is_empty() => return vec![Effect::ListModels],
            Verb::Model => return self.check_model(arguments.to_owned()),
            Verb::Mode => self.change_mode(arguments),
            Verb::Agent => {
                let (name, visit) = (arguments.to_owned(), self.visit);
                return vec![Effect::CheckAgent { name, visit }];
            }
            Verb::Budget if !arguments.is_empty() => return self.set_budget(arguments),
            Verb::Web => {
                self.note("stepwell serve, in another terminal, shows your sessions in a browser");
            }
            verb => return self.command_line(verb, arguments),
        }
        Vec::new()
    }

    fn new_session(&mut self, task: &str) -> Vec<Effect> {
        if self.is_bound() {
            return Vec::new();
        }
        let mut effects = self.let_go();
        self.begin_anew();
        effects.extend(self.go_home());
        self.note("a new session begins with what you say next");
        effects.extend(match task.is_empty() {
            true => vec![Effect::ListStart],
            false => self.send(task.to_owned()),
        });
        effects
    }

    fn stop_elsewhere(&mut self) -> Vec<Effect> {
        let Some(card) = &self.session else { return Vec::new() };
        let session = card.id.clone();
        self.say_briefly("it was asked to stop");
        vec![Effect::StopElsewhere(session)]
    }

    /// Shows who works for the session, or did: what is not known here is read.
    fn show_helpers(&mut self) -> Vec<Effect> {
        match &self.session {
            Some(card) if self.helpers.is_empty() => {
                vec![Effect::ListHelpers(card.id.clone())]
            }
            None if self.helpers.is_empty() => {
                self.say_briefly("no session is open yet");
                Vec::new()
            }
            _ => {
                self.list_helpers();
                Vec::new()
            }
        }
    }

    fn list_helpers(&mut self) {
        let names = self.helpers.iter().map(Helper::title).collect();
        self.choose_among(Choosing::Helper, names);
    }

    /// Takes in who worked for a session, if it is still open. Where nobody did, its family is shown.
    pub(super) fn helpers_read(&mut self, session: &SessionId, read: Vec<Helper>) -> Vec<Effect> {
        // Whoever works by now is known better here.
        if !self.is_open(session) || !self.helpers.is_empty() {
            return Vec::new();
        }
        if read.is_empty() {
            let arguments = ["show", session.as_str(), "--tree"].map(str::to_owned).to_vec();
            return vec![Effect::Command { arguments, purpose: Purpose::Show("family") }];
        }
        self.helpers = read;
        self.list_helpers();
        Vec::new()
    }

    pub(super) fn set_agent(&mut self, name: &str) {
        self.settings.agent = Some(name.to_owned());
        self.say_briefly(format!("the next turn is {name}'s"));
    }

    pub(super) fn open(&mut self, session: &str) -> Vec<Effect> {
        match self.is_bound() {
            true => Vec::new(),
            false => self.open_session(session.to_owned(), None, true),
        }
    }

    pub(super) fn check_model(&self, name: String) -> Vec<Effect> {
        vec![Effect::CheckModel { name, visit: self.visit }]
    }

    /// Sets what all of the session may cost. It is on record at once, and the run that works keeps to
    /// it; one elsewhere keeps to less than before, and to more from its next turn on.
    fn set_budget(&mut self, typed: &str) -> Vec<Effect> {
        let most = match typed.trim_start_matches('$').parse::<Money>() {
            Ok(most) if most >= Money::ZERO => most,
            Ok(_) => {
                self.say_briefly("a budget is not less than nothing");
                return Vec::new();
            }
            Err(why) => {
                self.trouble(&Clean::line(&format!("/budget {typed}: {why}")), None);
                return Vec::new();
            }
        };
        self.settings.budget = Some(most);
        let when = match &self.work {
            Work::Idle => "",
            Work::Working { .. } => ", from the next call of a model on",
            Work::Watching { .. } => "; more than before counts from the next turn on",
        };
        self.say_briefly(format!("the session may cost ${most}{when}"));
        let session = self.session.as_ref().map(|card| card.id.clone());
        match session.is_some() || self.is_working() {
            true => vec![Effect::SetBudget { session, most }],
            false => Vec::new(),
        }
    }

    fn detach(&mut self) -> Vec<Effect> {
        match self.is_working() {
            true => {
                self.detach = Detach::Asked;
                self.stop()
            }
            false => self.leave(),
        }
    }

    fn copy(&mut self, what: &str) -> Vec<Effect> {
        let text = match (what, &self.session) {
            ("id", Some(card)) => Some(card.id.to_string()),
            ("id", None) => None,
            _ => self.transcript.last_answer(),
        };
        match text {
            Some(text) => {
                self.say_briefly("copied");
                vec![Effect::Copy(text)]
            }
            None => {
                self.say_briefly("there is nothing to copy yet");
                Vec::new()
            }
        }
    }

    pub(super) fn set_model(&mut self, name: &str) {
        self.settings.model = Some(name.to_owned());
        let when = if self.is_working() { "the next turn" } else { "from now on" };
        self.say_briefly(format!("{when}: {name}"));
    }

    fn change_mode(&mut self, typed: &str) {
        match typed.parse::<Mode>() {
            Ok(mode) => self.set_mode(mode),
            Err(_) if typed.is_empty() => {
                self.open_page(Page::Choice(ChoicePage::modes(self.mode())));
            }
            Err(why) => self.trouble(&Clean::line(&why), None),
        }
    }

    pub(super) fn open_help(&mut self) {
        let mut text = String::from("# Keys\n\n");
        for (key, does) in KEYS {
            text.push_str(&format!("- **{key}**: {does}\n"));
        }
        for group in Group::ALL {
            text.push_str(&format!("\n## {}\n\n", group.title()));
            for command in SLASH_COMMANDS.iter().filter(|command| command.group == group) {
                text.push_str(&format!("- `{}` {}\n", command.usage(), command.help));
            }
        }
        self.open_text("help", Content::Markdown(Clean::new(&text)));
    }

    fn help(&mut self, about: &str) {
        let about = about.trim_start_matches('/');
        if about.is_empty() {
            return self.open_help();
        }
        match Invocation::parse(&format!("/{about}")) {
            Ok(Invocation { command, .. }) => {
                let also: Vec<_> =
                    command.aliases.iter().map(|alias| format!("/{alias}")).collect();
                let also = match also.is_empty() {
                    true => String::new(),
                    false => format!(" (also {})", also.join(", ")),
                };
                self.note(format!("{}: {}{also}", command.usage(), command.help));
            }
            Err(unknown) => self.tell_unknown(&unknown),
        }
    }

    /// Commands that are the command line's.
    fn command_line(&mut self, verb: Verb, arguments: &str) -> Vec<Effect> {
        let open = self.session.as_ref().map(|card| card.id.clone());
        match command_line(verb, arguments, open.as_ref(), self.visit) {
            Ok((arguments, purpose)) => vec![Effect::Command { arguments, purpose }],
            Err(why) => {
                self.say_briefly(why);
                Vec::new()
            }
        }
    }
}

/// A slash command as arguments of the command line, and what its answer is for.
pub(crate) fn command_line(
    verb: Verb,
    typed: &str,
    open: Option<&SessionId>,
    visit: Visit,
) -> Result<(Vec<String>, Purpose), &'static str> {
    let words: Vec<&str> = typed.split_whitespace().collect();
    let of_session = |name: &str, rest: &[&str]| {
        let id = open.ok_or("no session is open yet")?;
        let mut all = vec![name.to_owned(), id.to_string()];
        all.extend(rest.iter().map(|word| (*word).to_owned()));
        Ok::<_, &'static str>(all)
    };
    let session = || open.cloned().ok_or("no session is open yet");
    let reload = || session().map(Purpose::Reload);
    let forked = || session().map(|of| Purpose::Forked { of, visit });
    let plain = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let needed = |what| if typed.is_empty() { Err(what) } else { Ok(typed) };
    // What was typed is never taken for a flag.
    let whole: &[&str] = if typed.is_empty() { &[] } else { &["--", typed] };
    let each: Vec<&str> = match words.is_empty() {
        true => Vec::new(),
        false => std::iter::once("--").chain(words.iter().copied()).collect(),
    };
    Ok(match verb {
        Verb::Status => (of_session("show", &[])?, Purpose::Show("status")),
        Verb::Rename => (
            of_session("label", &["--", needed("which name? /rename NAME")?])?,
            Purpose::Show("rename"),
        ),
        Verb::Tag => (of_session("tag", &each)?, Purpose::Show("tag")),
        Verb::Untag => {
            needed("which tags? /untag TAG…")?;
            (of_session("untag", &each)?, Purpose::Show("untag"))
        }
        Verb::Pin => (of_session("pin", &[])?, Purpose::Show("pin")),
        Verb::Unpin => (of_session("unpin", &[])?, Purpose::Show("unpin")),
        Verb::Delete if typed.is_empty() => {
            let id = open.ok_or("no session is open yet")?.clone();
            (of_session("delete", &[])?, Purpose::Deleted(id))
        }
        Verb::Delete => (plain(&["delete", "--", typed]), Purpose::Show("delete")),
        Verb::Export => {
            // A file that is there is replaced only if that is said.
            let (typed, flags) = flagged(typed, &["--force"]);
            let (format, path) = export(&typed.split_whitespace().collect::<Vec<_>>())?;
            let mut all = of_session("export", &["--format", format])?;
            let id = open.map(ToString::to_string).unwrap_or_default();
            let ending = if format == "markdown" { "md" } else { format };
            let path = path.unwrap_or_else(|| format!("{id}.{ending}"));
            all.push(format!("--output={path}"));
            all.extend(flags.into_iter().map(str::to_owned));
            (all, Purpose::Show("export"))
        }
        Verb::Import if typed.is_empty() => {
            (plain(&["import", "--dry-run"]), Purpose::Show("import"))
        }
        Verb::Import => (plain(&["import", "--yes", "--", typed]), Purpose::Show("import")),
        Verb::With => {
            let agent = match typed {
                "claude" | "claude-code" => "claude",
                "codex" => "codex",
                "strands" => "strands",
                _ => return Err("with whom? /with claude, codex, qwen, pi or strands"),
            };
            (of_session("resume", &["--with", agent])?, Purpose::Show("with"))
        }
        Verb::Checkpoint => (of_session("checkpoint", whole)?, Purpose::Show("checkpoints")),
        Verb::Save => {
            let name = if typed.is_empty() { "saved" } else { typed };
            (of_session("checkpoint", &["--", name])?, Purpose::Show("save"))
        }
        Verb::Rewind => {
            let (point, flags) = flagged(typed, &["--force", "--both", "--chat", "--files"]);
            if point.is_empty() {
                return Err("which point? /rewind POINT [--force]; /rewind shows them");
            }
            let mut all = of_session("rewind", &[&format!("--to={point}")])?;
            all.extend(flags.into_iter().map(str::to_owned));
            (all, reload()?)
        }
        Verb::Undo | Verb::Redo => {
            let (rest, flags) = flagged(typed, &["--force"]);
            if !rest.is_empty() {
                return Err("it takes no point: /rewind goes back to one");
            }
            let way = if verb == Verb::Undo { "--undo" } else { "--redo" };
            (of_session("rewind", &[&[way][..], &flags].concat())?, reload()?)
        }
        Verb::Fork if typed.is_empty() => (of_session("fork", &[])?, forked()?),
        Verb::Fork => (of_session("fork", &[&format!("--at={typed}")])?, forked()?),
        Verb::Diff if typed.is_empty() => (of_session("diff", &[])?, Purpose::Diff),
        Verb::Diff => (of_session("diff", &[&format!("--from={typed}")])?, Purpose::Diff),
        Verb::Files => (of_session("files", whole)?, Purpose::Show("files")),
        Verb::Compact if typed == "undo" => (of_session("compact", &["--undo"])?, reload()?),
        Verb::Compact => (of_session("compact", &[])?, reload()?),
        Verb::Context => (of_session("show", &["--view"])?, Purpose::Show("context")),
        Verb::Keep => {
            needed("which message? /keep SEQ; /context shows the seqs")?;
            (of_session("pin-message", whole)?, Purpose::Show("keep"))
        }
        Verb::Models => (plain(&["models"]), Purpose::Show("models")),
        Verb::Budget | Verb::Cost => (of_session("show", &[])?, Purpose::Show("cost")),
        Verb::Goal if typed.is_empty() => (of_session("state", &[])?, Purpose::Show("goal")),
        Verb::Goal => (of_session("state", &["goal", "--", typed])?, Purpose::Show("goal")),
        Verb::Tasks => (of_session("tasks", &[])?, Purpose::Show("tasks")),
        Verb::Phase => (of_session("phase", whole)?, Purpose::Show("phase")),
        Verb::Gates => (plain(&["gates", "--everywhere"]), Purpose::Show("gates")),
        Verb::Ledger => (plain(&["ledger"]), Purpose::Show("ledger")),
        Verb::Mcp => {
            let mut all = plain(&["mcp", "list", "--tools"]);
            all.extend(open.map(|session| format!("--session={session}")));
            (all, Purpose::Show("mcp"))
        }
        Verb::Config => {
            let all = match words.as_slice() {
                [] => plain(&["config", "list"]),
                [key] => plain(&["config", "get", "--", key]),
                [key, ..] => {
                    let value = typed[key.len()..].trim();
                    // Some are the user's own, and belong in no project.
                    let is_own = OWN.iter().any(|own| key.starts_with(own));
                    let set: &[&str] = if is_own {
                        &["config", "set", "--user", "--"]
                    } else {
                        &["config", "set", "--"]
                    };
                    plain(&[set, &[*key, value]].concat())
                }
            };
            let changes = words.len() > 1;
            (all, if changes { Purpose::Configured } else { Purpose::Show("config") })
        }
        _ => return Err("this is not for here"),
    })
}

/// What was typed without the flags at its end, and those.
fn flagged<'a>(typed: &'a str, known: &[&'static str]) -> (&'a str, Vec<&'static str>) {
    let (mut rest, mut flags) = (typed, Vec::new());
    while let Some(flag) = known.iter().find(|flag| {
        rest.strip_suffix(**flag).is_some_and(|rest| rest.is_empty() || rest.ends_with(' '))
    }) {
        rest = rest[..rest.len() - flag.len()].trim_end();
        flags.insert(0, *flag);
    }
    (rest, flags)
}

/// Sections of settings that only the user's own file may have.
const OWN: [&str; 3] = ["other_agents.", "store.", "talk."];

/// A format, then a path; or a path alone, from whose ending the format follows. A path has a slash
/// or an ending, so that a format that there is none of is not taken for one.
fn export<'a>(words: &[&'a str]) -> Result<(&'a str, Option<String>), &'static str> {
    let format = |word: &str| match word {
        "markdown" | "md" => Some("markdown"),
        "html" => Some("html"),
        "json" => Some("json"),
        "jsonl" => Some("jsonl"),
        _ => None,
    };
    Ok(match words {
        [] => ("markdown", None),
        [first, rest @ ..] => match format(first) {
            Some(format) if rest.is_empty() => (format, None),
            Some(format) => (format, Some(rest.join(" "))),
            None => {
                let path = words.join(" ");
                if !path.contains(['/', '.']) {
                    return Err("which format? /export markdown, html, json or jsonl, then a path");
                }
                let ending = path.rsplit('.').next().and_then(format);
                (ending.unwrap_or("markdown"), Some(path))
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_either_done_here_or_by_the_command_line() {
        let here = [
            Verb::Help,
            Verb::New,
            Verb::Stop,
            Verb::Quit,
            Verb::Detach,
            Verb::Copy,
            Verb::Thinking,
            Verb::Resume,
            Verb::Sessions,
            Verb::Search,
            Verb::Timeline,
            Verb::Transcript,
            Verb::Model,
            Verb::Mode,
            Verb::Continue,
            Verb::Later,
            Verb::Discuss,
            Verb::Plan,
            Verb::Execute,
            Verb::Verify,
            Verb::Ship,
            Verb::Flow,
            Verb::Agent,
            Verb::Agents,
            Verb::Web,
        ];
        let session: SessionId = "one".parse().unwrap();
        for command in SLASH_COMMANDS {
            let done = ["", "claude", "x"]
                .iter()
                .any(|typed| command_line(command.verb, typed, Some(&session), Visit(0)).is_ok());
            assert_ne!(done, here.contains(&command.verb), "/{}", command.name);
        }
    }

    #[test]
    fn what_is_typed_becomes_arguments_and_never_more_of_them() {
        let session: SessionId = "one".parse().unwrap();
        for (verb, typed, arguments) in [
            (Verb::Rename, "my --name", vec!["label", "one", "--", "my --name"]),
            (Verb::Tag, "a b", vec!["tag", "one", "--", "a", "b"]),
            (
                Verb::Export,
                "markdown",
                vec!["export", "one", "--format", "markdown", "--output=one.md"],
            ),
            (
                Verb::Export,
                "out dir/a.html",
                vec!["export", "one", "--format", "html", "--output=out dir/a.html"],
            ),
            (
                Verb::Export,
                "json a.json",
                vec!["export", "one", "--format", "json", "--output=a.json"],
            ),
            (
                Verb::Export,
                "json a.json --force",
                vec!["export", "one", "--format", "json", "--output=a.json", "--force"],
            ),
            (Verb::Rewind, "-2", vec!["rewind", "one", "--to=-2"]),
            (Verb::Rewind, "-2 --force", vec!["rewind", "one", "--to=-2", "--force"]),
            (Verb::Rewind, "15 --chat", vec!["rewind", "one", "--to=15", "--chat"]),
            (
                Verb::Rewind,
                "15 --files --force",
                vec!["rewind", "one", "--to=15", "--files", "--force"],
            ),
            (Verb::Undo, "", vec!["rewind", "one", "--undo"]),
            (Verb::Undo, "--force", vec!["rewind", "one", "--undo", "--force"]),
            (Verb::Redo, "--force", vec!["rewind", "one", "--redo", "--force"]),
            (Verb::Config, "model.name a b", vec!["config", "set", "--", "model.name", "a b"]),
            (Verb::Goal, "ship it", vec!["state", "one", "goal", "--", "ship it"]),
        ] {
            let done = command_line(verb, typed, Some(&session), Visit(0));
            assert_eq!(done.unwrap().0, arguments);
        }
        let unopened = command_line(Verb::Rename, "x", None, Visit(0));
        assert_eq!(unopened, Err("no session is open yet"));
        let which = command_line(Verb::Rewind, "--force", Some(&session), Visit(0));
        assert!(which.is_err_and(|why| why.contains("which point?")));
        let bogus = command_line(Verb::Export, "bogus", Some(&session), Visit(0)).unwrap_err();
        assert!(bogus.contains("markdown, html, json or jsonl"), "{bogus}");
    }
}
