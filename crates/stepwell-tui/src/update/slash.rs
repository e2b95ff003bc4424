//! Slash commands: what each does in the conversation. Those that the runtime has are its commands.

use stepwell::SessionId;
use stepwell::model::{Mode, Money};
use stepwell_runtime::command::{
    Command, Group, Invocation, SLASH_COMMANDS, SessionCommand, UnknownCommand, Verb, slash,
};
use stepwell_runtime::inspect::Depth;

use super::chat::KEYS;
use crate::clean::Clean;
use crate::effect::{Effect, PointsFor};
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
                self.view.thinking = !self.view.thinking;
                let now = if self.view.thinking { "shown" } else { "hidden" };
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
            verb => return self.run_command(verb, arguments),
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
        let Some(card) = self.phase.card() else { return Vec::new() };
        let session = card.id.clone();
        self.say_briefly("it was asked to stop");
        vec![Effect::StopElsewhere(session)]
    }

    /// Shows who works for the session, or did: what is not known here is read.
    fn show_helpers(&mut self) -> Vec<Effect> {
        match self.phase.card() {
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
            let family = SessionCommand::Show(Depth::Family);
            let command = Command::Session(session.to_string(), family);
            return vec![Effect::Run { command, visit: self.visit }];
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
        let session = self.phase.card().map(|card| card.id.clone());
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
        let text = match (what, self.phase.card()) {
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

    /// Commands that the runtime carries out.
    fn run_command(&mut self, verb: Verb, typed: &str) -> Vec<Effect> {
        let open = self.phase.card().map(|card| &card.id);
        match slash::read(verb, typed, open) {
            Ok(command) => vec![Effect::Run { command, visit: self.visit }],
            Err(why) => {
                self.say_briefly(why.to_string());
                Vec::new()
            }
        }
    }
}
