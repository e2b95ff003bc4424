//! Slash lines as commands.

use stepwell::SessionId;
use stepwell::model::{Change, Scope};
use stepwell_formats::{Existing, Format, Length};
use stepwell_runtime::command::slash::{Misread, read};
use stepwell_runtime::command::{
    Command, ConfigCommand, Export, Folder, Invocation, MoveCommand, RewindTo, SLASH_COMMANDS,
    SessionCommand, SettingsFile, Verb,
};

/// A slash line, where a session is open.
fn typed(line: &str) -> Result<SessionCommand, Misread> {
    let Invocation { command, arguments } = Invocation::parse(line).unwrap();
    match read(command.verb, &arguments, Some(&"one".parse().unwrap()))? {
        Command::Session(session, what) if session == "one" => Ok(what),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn every_command_is_either_of_the_runtime_or_of_the_front_end() {
    let front_end = [
        Verb::Help,
        Verb::New,
        Verb::Stop,
        Verb::Quit,
        Verb::Detach,
        Verb::Copy,
        Verb::Thinking,
        Verb::Resume,
        Verb::Sessions,
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
        let known = ["", "claude", "x", "3"]
            .iter()
            .any(|typed| read(command.verb, typed, Some(&session)).is_ok());
        assert_ne!(known, front_end.contains(&command.verb), "/{}", command.name);
    }
}

#[test]
fn a_point_may_have_blanks_and_flags_come_last() {
    let back = |point: &str| MoveCommand::to(RewindTo::Point(point.to_owned()));
    let files = MoveCommand { scope: Scope::Files, force: true, ..back("15") };
    for (line, wanted) in [
        ("/rewind -2", back("-2")),
        ("/rewind before the change", back("before the change")),
        ("/rewind -2 --force", MoveCommand { force: true, ..back("-2") }),
        ("/rewind 15 --chat", MoveCommand { scope: Scope::Chat, ..back("15") }),
        ("/rewind 15 --files --force", files),
        ("/undo", MoveCommand::to(RewindTo::Undo)),
        ("/redo --force", MoveCommand { force: true, ..MoveCommand::to(RewindTo::Redo) }),
    ] {
        assert_eq!(typed(line), Ok(SessionCommand::Rewind(wanted)), "{line}");
    }
    let which = typed("/rewind --force").unwrap_err().to_string();
    assert!(which.contains("which point?"), "{which}");
}

#[test]
fn what_looks_like_a_flag_is_part_of_a_name() {
    let label = SessionCommand::Label(Change::Set("my --name".to_owned()));
    assert_eq!(typed("/rename my --name"), Ok(label));
    let tags = ["a", "b"].map(str::to_owned).into();
    assert_eq!(typed("/tag a b"), Ok(SessionCommand::Tag { add: tags, remove: [].into() }));
    assert_eq!(typed("/goal ship it"), Ok(SessionCommand::Goal("ship it".to_owned())));
    assert_eq!(read(Verb::Rename, "x", None), Err(Misread::NoSession));
    assert_eq!(typed("/rename").unwrap_err().to_string(), "which name? /rename NAME");
}

#[test]
fn an_export_has_a_format_or_a_path_whose_ending_is_one() {
    let json: Format = "json".parse().unwrap();
    let (md, html) = (Format::MARKDOWN, Format::HTML);
    for (line, format, path, existing) in [
        ("/export", md, "one.md", Existing::Keep),
        ("/export markdown", md, "one.md", Existing::Keep),
        ("/export out dir/a.html", html, "out dir/a.html", Existing::Keep),
        ("/export json a.json", json, "a.json", Existing::Keep),
        ("/export json a.json --force", json, "a.json", Existing::Replace),
    ] {
        let (path, folder, length) = (path.into(), Folder::Workspace, Length::Whole);
        let wanted = Export { format, path, folder, existing, length };
        assert_eq!(typed(line), Ok(SessionCommand::Export(wanted)), "{line}");
    }
    let bogus = typed("/export bogus").unwrap_err().to_string();
    assert!(bogus.contains("markdown, html, json or jsonl"), "{bogus}");
}

#[test]
fn settings_that_are_the_users_own_are_kept_with_them() {
    let read = |typed| read(Verb::Config, typed, None).unwrap();
    let set = |key: &str, value: &str, file| {
        let (key, value) = (key.to_owned(), value.to_owned());
        Command::Config(ConfigCommand::Set { key, value, file })
    };
    let model = set("model.name", "a b", SettingsFile::Workspace);
    assert_eq!(read("model.name a b"), model);
    let index = set("other_agents.index", "true", SettingsFile::User);
    assert_eq!(read("other_agents.index true"), index);
    assert_eq!(read("model.name"), Command::Config(ConfigCommand::Get("model.name".into())));
}
