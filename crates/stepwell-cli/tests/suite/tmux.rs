//! chat in tmux, a terminal that others wrote: a day of work, the power going while a model speaks and
//! while something is asked, another size, and a shell in between. All of the scrollback is looked at.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use stepwell::Event;
use stepwell::model::Role;
use stepwell::store::Span;
use stepwell_strict::{Ending, Say};

use crate::editors::bare;
use crate::running;
use crate::test_env::TestEnv;

/// How often is looked for something before it is given up; a look takes some milliseconds.
const LOOKS: usize = 20_000;

/// A server of tmux of its own, which ends with the test.
struct Tmux {
    program: PathBuf,
    /// How many servers there were. Each has a socket of its own: one that is about to end would
    /// still be spoken to.
    servers: Cell<u32>,
    env: TestEnv,
}

impl Tmux {
    /// None, if tmux is not installed.
    #[expect(clippy::disallowed_methods, reason = "whoever runs the tests says what there is")]
    #[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
    fn new(env: TestEnv) -> Option<Self> {
        let folders = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map(Path::new);
        let found = folders.map(|folder| folder.join("tmux")).into_iter().find(|it| it.exists());
        let needed = ["CI", "STEPWELL_CHECK"].iter().any(|it| std::env::var_os(it).is_some());
        assert!(found.is_some() || !needed, "tmux is not installed");
        let Some(program) = found else {
            eprintln!("skipped: tmux is not installed");
            return None;
        };
        Some(Self { program, servers: Cell::new(0), env })
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let mut command = bare(&self.program, &self.env);
        let socket = self.env.path(&format!("tmux{}", self.servers.get()));
        command.env("LC_ALL", "C.UTF-8").arg("-S").arg(socket).args(["-f", "/dev/null"]);
        command.args(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs a program in a fresh window of a size.
    fn sit(&self, program: &Command, (columns, rows): (u16, u16)) {
        self.servers.set(self.servers.get() + 1);
        let mut line = "exec env -i TERM=screen-256color".to_owned();
        for (name, value) in program.get_envs() {
            let value = value.map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
            line.push_str(&format!(" '{}={value}'", name.to_string_lossy()));
        }
        for word in std::iter::once(program.get_program()).chain(program.get_args()) {
            line.push_str(&format!(" '{}'", word.to_string_lossy()));
        }
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let made = self.tmux(&[
            "new-session",
            "-d",
            "-s",
            "chat",
            "-x",
            &columns,
            "-y",
            &rows,
            &line,
            ";",
            "set",
            "-g",
            "status",
            "off",
            ";",
            "set",
            "-g",
            "remain-on-exit",
            "on",
        ]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    fn chat(&self, arguments: &[&str]) {
        self.sit(&self.env.command(&[&["chat"], arguments].concat()), (80, 24));
    }

    /// Everything, with what scrolled away.
    fn all(&self) -> String {
        let shown = self.tmux(&["capture-pane", "-p", "-S", "-", "-t", "chat"]);
        String::from_utf8_lossy(&shown.stdout).into_owned()
    }

    /// What is on the screen.
    fn screen(&self) -> String {
        let shown = self.tmux(&["capture-pane", "-p", "-t", "chat"]);
        String::from_utf8_lossy(&shown.stdout).into_owned()
    }

    /// Waits until the screen is as it should be.
    fn when(&self, is_it: impl Fn(&str) -> bool) -> String {
        let mut looks = (0..LOOKS).map(|_| self.screen());
        let found = looks.find(|screen| is_it(screen));
        assert!(found.is_some(), "never:\n{}", self.all());
        found.unwrap_or_default()
    }

    fn until(&self, text: &str) -> &Self {
        self.when(|screen| screen.contains(text));
        self
    }

    /// Types a text and sends it.
    fn say(&self, text: &str) -> &Self {
        self.tmux(&["send-keys", "-t", "chat", "-l", "--", text]);
        self.keys(&["Enter"])
    }

    fn keys(&self, keys: &[&str]) -> &Self {
        self.tmux(&[&["send-keys", "-t", "chat"], keys].concat());
        self
    }

    /// Allows what is asked once, again if the key came too soon.
    fn allow(&self) -> &Self {
        let how = "arrows and Enter";
        self.until(how).keys(&["Down"]).until("[Allow once]");
        loop {
            self.keys(&["Enter"]);
            let seen = self.when(|it| !it.contains(how) || it.contains("just came up"));
            if !seen.contains(how) {
                return self;
            }
            self.when(|it| !it.contains("just came up"));
        }
    }

    /// Waits until nothing is drawn any more: a terminal that gets another size while a frame comes
    /// has the cursor where nobody expects it.
    fn still(&self) -> &Self {
        let (mut last, mut same) = (self.screen(), 0);
        while same < 60 {
            let now = self.screen();
            same = if now == last { same + 1 } else { 0 };
            last = now;
        }
        self
    }

    /// Gives the window another size, and waits until the program has drawn for it. tmux changes the
    /// screen at once and tells the program up to a quarter of a second later: what the program draws
    /// in between lands in the wrong rows.
    fn resize(&self, columns: usize, rows: usize) -> &Self {
        let size = [columns, rows].map(|it| it.to_string());
        self.tmux(&["resize-window", "-t", "chat", "-x", &size[0], "-y", &size[1]]);
        let rule = "─".repeat(columns);
        // An old rule that was wider takes two rows of the new width.
        self.when(|screen| screen.lines().filter(|line| *line == rule).count() == 1);
        self.still()
    }

    /// Waits until the program is gone.
    fn until_dead(&self) {
        let dead = || self.tmux(&["display-message", "-p", "-t", "chat", "#{pane_dead}"]).stdout;
        let is_dead = (0..LOOKS).any(|_| dead().starts_with(b"1"));
        assert!(is_dead, "it goes on:\n{}", self.all());
    }

    /// The power goes.
    fn kill(&self) {
        let pid = self.tmux(&["display-message", "-p", "-t", "chat", "#{pane_pid}"]);
        let pid = String::from_utf8_lossy(&pid.stdout).trim().to_owned();
        let killed = Command::new("kill").args(["-9", &pid]).status().unwrap();
        assert!(killed.success());
        self.until_dead();
        self.close();
    }

    fn leave(&self) -> String {
        self.keys(&["C-d"]).until_dead();
        let all = self.all();
        self.close();
        all
    }

    fn close(&self) {
        self.tmux(&["kill-server"]);
    }

    /// What the user said in the newest session.
    fn said(&self) -> Vec<String> {
        let well = self.env.well();
        let id = well.find("@last").unwrap();
        let events = well.store().events(&id, Span::ALL).unwrap().events;
        let said = events.into_iter().filter_map(|event| match event.event {
            Event::Message(message) if message.role == Role::User => Some(message.text()),
            _ => None,
        });
        said.collect()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.close();
    }
}

/// How often a line is in a text.
fn count(all: &str, line: &str) -> usize {
    all.lines().filter(|it| it.trim() == line).count()
}

const DAY: &str = "
answers:
  - text: I write **the file**.
    calls: [{tool: write_file, arguments: {path: notes.md, content: 'first'}}]
  - text: \"It is written.\\n\\n- one\\n- two\\n- three\\n- four\\n- five\\n- six\\n- seven\\n- eight\\n\"
  - text: 漢字 and more.
  - text: 'Then otherwise: fine.'
";

#[test]
fn a_day_of_work_in_tmux_survives_a_kill_at_a_question_and_leaves_a_clean_scrollback() {
    let Some(tmux) = Tmux::new(running::env(DAY)) else { return };
    tmux.chat(&["--model", "script:script.yaml"]);
    tmux.until("what is to be done?").say("write the notes").until("arrows and Enter");
    tmux.kill();
    assert!(!tmux.env.work().join("notes.md").exists());
    tmux.chat(&[]);
    tmux.until("waits for you").keys(&["Down", "Enter"]).allow().until("what next?");
    assert_eq!(tmux.env.read("notes.md"), "first");
    tmux.say("more").until("漢字 and more.").until("what next?").still();
    tmux.resize(40, 15)
        .until("what next?")
        .say("!cat notes.md")
        .until("  first")
        .until("what next?");
    tmux.keys(&["C-t"]).until("transcript").keys(&["q"]).until("what next?").still();
    tmux.resize(100, 30)
        .until("what next?")
        .say("otherwise")
        .until("Then otherwise: fine.")
        .until("what next?");
    let all = tmux.leave();
    for line in ["It is written.", "• eight", "漢字 and more.", "Then otherwise: fine."] {
        assert_eq!(count(&all, line), 1, "{line}:\n{all}");
    }
    assert!(all.contains("Saved. stepwell chat "), "{all}");
    // What is only drawn for a while is not left behind.
    assert!(!all.contains("what is to be done?"), "{all}");
    assert!(!all.contains("say something"), "{all}");
    let said = tmux.said();
    assert_eq!([&said[0], &said[1], &said[3]], ["write the notes", "more", "otherwise"]);
    assert!(said[2].starts_with("I ran `cat notes.md`"), "{said:?}");
}

#[test]
fn a_kill_in_tmux_while_the_model_speaks_loses_nothing_that_was_said() {
    let (env, strict, _runtime) = running::with_provider("openai");
    let Some(tmux) = Tmux::new(env) else { return };
    strict.push(Say::text("Half of the answer").ending(Ending::SilentAfter(5)));
    tmux.chat(&["--model", "local/large"]);
    tmux.until("what is to be done?").say("tell me").until("Half of the answer");
    tmux.say("and be brief").until("» and be brief");
    let well = tmux.env.well();
    while well.info(&well.find("@last").unwrap()).unwrap().head.unheard == 0 {
        std::thread::yield_now();
    }
    tmux.kill();
    // What was said meanwhile is heard before the model is asked again.
    strict.push(Say::text("The whole answer."));
    tmux.chat(&["@last"]);
    tmux.until("The whole answer.").until("what next?");
    tmux.leave();
    assert_eq!(tmux.said(), ["tell me", "and be brief"]);
}

#[test]
fn a_chat_in_tmux_is_suspended_and_goes_on() {
    let Some(tmux) = Tmux::new(running::env(DAY)) else { return };
    let mut shell = tmux.env.command(&[]);
    shell.env("PS1", "shell> ").env("PATH", "/usr/bin:/bin");
    let mut with_jobs = Command::new("bash");
    with_jobs.args(["--norc", "--noprofile", "-i"]);
    for (name, value) in shell.get_envs() {
        with_jobs.env(name, value.unwrap_or_default());
    }
    tmux.sit(&with_jobs, (80, 24));
    let program = shell.get_program().to_string_lossy().into_owned();
    let work = tmux.env.work();
    tmux.until("shell>").say(&format!("cd {}; clear", work.display()));
    tmux.say(&format!("{program} chat --model script:script.yaml"));
    tmux.until("what is to be done?").keys(&["a", "b", "c"]).until("› abc");
    tmux.keys(&["C-z"]).until("Stopped").say("echo from-the-shell").until("from-the-shell");
    tmux.say("fg").until("› abc");
    tmux.keys(&["C-u"]).until("what is to be done?").keys(&["C-d"]);
    tmux.say("echo it-is-$((1+1))").until("it-is-2");
}
