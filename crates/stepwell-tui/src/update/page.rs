//! Keys on pages.

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use stepwell::SessionId;
use stepwell::model::{Change, Mode, Scope};
use stepwell_runtime::command::{Command, MoveCommand, RewindTo, SessionCommand, Verb, slash};

use crate::clean::Clean;
use crate::composer::typed;
use crate::editor::{Editor, Move};
use crate::effect::{Effect, PointsFor};
use crate::page::{ChoicePage, Choosing, Content, Doing, Page, PointsPage, TextPage, WAYS, Way};
use crate::state::State;

impl State {
    pub(super) fn page_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let Some(page) = &self.page else { return Vec::new() };
        match page {
            Page::Picker(_) => self.picker_key(key),
            Page::Points(_) => self.points_key(key),
            Page::Text(_) => self.text_key(key),
            Page::Choice(_) => self.choice_key(key),
        }
    }

    pub(super) fn page_paste(&mut self, text: &str) -> Vec<Effect> {
        match &mut self.page {
            Some(Page::Picker(picker)) => {
                let line = Clean::line(text);
                match &mut picker.doing {
                    Doing::Renaming(editor) | Doing::Tagging(editor) => {
                        editor.insert(line.as_str());
                        Vec::new()
                    }
                    _ => {
                        picker.words.insert(line.as_str());
                        self.find()
                    }
                }
            }
            Some(Page::Choice(choice)) => {
                choice.filter.insert(Clean::line(text).as_str());
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn picker_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let session_open = self.phase.is_open();
        let page = self.page_rows();
        let Some(Page::Picker(picker)) = &mut self.page else { return Vec::new() };
        match picker.doing {
            Doing::Typing => {}
            Doing::Deleted if typed(key) == Some('u') => return self.act('u'),
            // Every other key goes on.
            Doing::Deleted => picker.doing = Doing::Typing,
            _ => return self.action_key(key),
        }
        let deleted = self.deleted.is_some();
        let Some(Page::Picker(picker)) = &mut self.page else { return Vec::new() };
        let last = picker.rows.as_ref().map_or(0, |rows| rows.len().saturating_sub(1));
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let selected = match key.code {
            KeyCode::Esc => {
                self.page = None;
                return Vec::new();
            }
            KeyCode::Char('r') if control => {
                picker.reach = picker.reach.wider(session_open);
                picker.stays = false;
                return self.find();
            }
            KeyCode::Enter => return self.open_selected(),
            KeyCode::Tab if picker.row().is_some() || deleted => {
                picker.doing = Doing::Choosing;
                return Vec::new();
            }
            KeyCode::Delete if picker.words.is_empty() => return self.act('d'),
            KeyCode::Up => picker.selected.saturating_sub(1),
            KeyCode::Down => (picker.selected + 1).min(last),
            KeyCode::Char('p') if control => picker.selected.saturating_sub(1),
            KeyCode::Char('n') if control => (picker.selected + 1).min(last),
            KeyCode::PageUp => picker.selected.saturating_sub(page),
            KeyCode::PageDown => (picker.selected + page).min(last),
            _ => {
                let before = picker.words.text().to_owned();
                line_key(&mut picker.words, key);
                if picker.words.text() == before {
                    return Vec::new();
                }
                (picker.selected, picker.stays) = (0, false);
                return self.find();
            }
        };
        if selected == picker.selected {
            return Vec::new();
        }
        picker.selected = selected;
        self.preview()
    }

    fn open_selected(&mut self) -> Vec<Effect> {
        let Some(Page::Picker(picker)) = &self.page else { return Vec::new() };
        let Some(row) = picker.row() else { return Vec::new() };
        let row = row.clone();
        if self.is_bound() {
            return Vec::new();
        }
        if let Some(foreign) = &row.foreign {
            let (path, session, visit) = (foreign.path.clone(), row.id.clone(), self.visit);
            self.say_briefly("it is read in first");
            return vec![Effect::Import { path, session, visit }];
        }
        self.open_session(row.id.to_string(), row.store, true)
    }

    /// Keys while something is done to the selected session.
    fn action_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let Some(Page::Picker(picker)) = &mut self.page else { return Vec::new() };
        let Some(row) = picker.row() else {
            picker.doing = Doing::Typing;
            // What was deleted can come back, also if nothing else is listed.
            return if typed(key) == Some('u') { self.act('u') } else { Vec::new() };
        };
        let id = row.id.to_string();
        match (&mut picker.doing, key.code) {
            (doing, KeyCode::Esc | KeyCode::Tab) => {
                *doing = Doing::Typing;
                Vec::new()
            }
            (Doing::Renaming(editor), KeyCode::Enter) => {
                let name = editor.text().trim().to_owned();
                picker.doing = Doing::Typing;
                let label = if name.is_empty() { Change::Clear } else { Change::Set(name) };
                self.run_on(id, SessionCommand::Label(label))
            }
            (Doing::Tagging(editor), KeyCode::Enter) => {
                let add: BTreeSet<_> =
                    editor.text().split_whitespace().map(str::to_owned).collect();
                picker.doing = Doing::Typing;
                match add.is_empty() {
                    true => Vec::new(),
                    false => self.run_on(id, SessionCommand::Tag { add, remove: BTreeSet::new() }),
                }
            }
            (Doing::Renaming(editor) | Doing::Tagging(editor), _) => {
                line_key(editor, key);
                Vec::new()
            }
            _ => match typed(key) {
                Some(c) => self.act(c),
                None => Vec::new(),
            },
        }
    }

    /// Does something to the selected session.
    fn act(&mut self, c: char) -> Vec<Effect> {
        let deleted = self.deleted.clone();
        let Some(Page::Picker(picker)) = &mut self.page else { return Vec::new() };
        picker.doing = Doing::Typing;
        if c == 'u' {
            self.deleted = None;
            return match deleted {
                Some(id) => self.run(Command::Restore(vec![id.to_string()])),
                None => {
                    self.say_briefly("nothing was deleted here");
                    Vec::new()
                }
            };
        }
        let Some(row) = picker.row() else { return Vec::new() };
        if row.foreign.is_some() && c != 'y' {
            self.say_briefly("another agent keeps it: Enter reads it in");
            return Vec::new();
        }
        if row.store.is_some() && c != 'y' {
            self.say_briefly("it is in another store: resume it there");
            return Vec::new();
        }
        let (id, session) = (row.id.to_string(), row.id.clone());
        match c {
            'r' => {
                let mut editor = Editor::default();
                editor.set(row.label.as_ref().map_or("", Clean::as_str));
                picker.doing = Doing::Renaming(editor);
                Vec::new()
            }
            't' => {
                picker.doing = Doing::Tagging(Editor::default());
                Vec::new()
            }
            'p' if row.pinned => self.run_on(id, SessionCommand::Unpin),
            'p' => self.run_on(id, SessionCommand::Pin),
            'f' => self.run_on(id, SessionCommand::Fork { at: None, label: None }),
            'y' => {
                self.say_briefly(format!("copied: {id}"));
                vec![Effect::Copy(id)]
            }
            'd' => self.run(Command::Delete(vec![id])),
            'c' => self.hand_over(&session, "claude"),
            'x' => self.hand_over(&session, "codex"),
            _ => {
                picker.doing = Doing::Choosing;
                Vec::new()
            }
        }
    }

    fn points_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let rows = self.page_rows();
        let Some(Page::Points(page)) = &mut self.page else { return Vec::new() };
        let PointsPage { selected, way, points, purpose } = page;
        let last = points.len().saturating_sub(1);
        match (key.code, way.as_mut()) {
            (KeyCode::Esc | KeyCode::Char('q'), Some(_)) => *way = None,
            (KeyCode::Esc | KeyCode::Char('q'), None) => self.page = None,
            (KeyCode::Up | KeyCode::Char('k'), Some(way)) => *way = way.saturating_sub(1),
            (KeyCode::Down | KeyCode::Char('j'), Some(way)) => {
                *way = (*way + 1).min(WAYS.len() - 1);
            }
            (KeyCode::Up | KeyCode::Char('k'), None) => *selected = selected.saturating_sub(1),
            (KeyCode::Down | KeyCode::Char('j'), None) => *selected = (*selected + 1).min(last),
            (KeyCode::PageUp, None) => *selected = selected.saturating_sub(rows),
            (KeyCode::PageDown, None) => *selected = (*selected + rows).min(last),
            (KeyCode::Home | KeyCode::Char('g'), None) => *selected = 0,
            (KeyCode::End | KeyCode::Char('G'), None) => *selected = last,
            (KeyCode::Char('f'), None) => {
                return self.at_point(|at| SessionCommand::Fork { at: Some(at), label: None });
            }
            (KeyCode::Char('d'), None) => {
                return self.at_point(|from| SessionCommand::Diff { from: Some(from), to: None });
            }
            (KeyCode::Enter | KeyCode::Char('r'), None) => match purpose {
                PointsFor::Timeline if key.code == KeyCode::Enter => {
                    let Some(point) = points.get(*selected) else { return Vec::new() };
                    let (title, text) =
                        (format!("{} {}", point.seq, point.kind), point.text.clone());
                    self.open_text(&title, Content::Plain(text));
                }
                _ => *way = Some(0),
            },
            (KeyCode::Enter, Some(chosen)) => {
                let way = WAYS[*chosen].0;
                return self.rewind(way);
            }
            _ => {}
        }
        Vec::new()
    }

    fn rewind(&mut self, way: Way) -> Vec<Effect> {
        if self.is_bound() {
            return Vec::new();
        }
        let (Some(Page::Points(page)), Some(card)) = (&self.page, self.phase.card()) else {
            return Vec::new();
        };
        let Some(point) = page.points.get(page.selected) else { return Vec::new() };
        let (id, to) = (card.id.to_string(), RewindTo::Point(point.seq.to_string()));
        let comes_back = point.kind == "you" && way.scope != Scope::Files;
        let retype = comes_back.then(|| point.text.to_string());
        if let Some(open) = self.phase.open_mut() {
            open.retype = retype;
        }
        self.page = None;
        let Way { scope, force } = way;
        self.run_on(id, SessionCommand::Rewind(MoveCommand { to, scope, force, dry_run: false }))
    }

    /// A command about the selected point.
    fn at_point(&self, what: impl FnOnce(String) -> SessionCommand) -> Vec<Effect> {
        let (Some(Page::Points(page)), Some(card)) = (&self.page, self.phase.card()) else {
            return Vec::new();
        };
        let Some(point) = page.points.get(page.selected) else { return Vec::new() };
        self.run_on(card.id.to_string(), what(point.seq.to_string()))
    }

    fn hand_over(&self, session: &SessionId, agent: &str) -> Vec<Effect> {
        match slash::read(Verb::With, agent, Some(session)) {
            Ok(command) => self.run(command),
            Err(_) => Vec::new(),
        }
    }

    fn run_on(&self, session: String, what: SessionCommand) -> Vec<Effect> {
        self.run(Command::Session(session, what))
    }

    fn run(&self, command: Command) -> Vec<Effect> {
        vec![Effect::Run { command, visit: self.visit }]
    }

    fn text_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let rows = self.page_rows();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let Some(Page::Text(page)) = &mut self.page else { return Vec::new() };
        let last = page.last_top(rows);
        page.top = match key.code {
            KeyCode::Esc | KeyCode::Char('q') => {
                self.page = None;
                return Vec::new();
            }
            KeyCode::Char('t') if control => {
                self.page = None;
                return Vec::new();
            }
            KeyCode::Up | KeyCode::Char('k') => page.top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => (page.top + 1).min(last),
            KeyCode::PageUp | KeyCode::Char('b') => page.top.saturating_sub(rows),
            KeyCode::PageDown | KeyCode::Char(' ' | 'f') => (page.top + rows).min(last),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            _ => return Vec::new(),
        };
        let TextPage { content, top, .. } = page;
        if *content == Content::Transcript
            && *top == 0
            && self.transcript.earlier
            && let (Some(card), Some(before)) = (self.phase.card(), self.transcript.first())
        {
            return vec![Effect::ReadEarlier { session: card.id.clone(), before }];
        }
        Vec::new()
    }

    fn choice_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let Some(Page::Choice(page)) = &mut self.page else { return Vec::new() };
        let last = page.fitting().len().saturating_sub(1);
        match key.code {
            KeyCode::Esc => self.page = None,
            KeyCode::Up => page.selected = page.selected.saturating_sub(1),
            KeyCode::Down => page.selected = (page.selected + 1).min(last),
            KeyCode::Enter => {
                let chosen = page.fitting().get(page.selected).map(ToString::to_string);
                // A model that is not in the list can be typed.
                let typed = page.filter.text().trim().to_owned();
                let ChoicePage { what, .. } = page;
                let what = *what;
                self.page = None;
                match (what, chosen) {
                    (Choosing::Model, Some(name)) => return self.check_model(name),
                    (Choosing::Model, None) if !typed.is_empty() => {
                        return self.check_model(typed);
                    }
                    (Choosing::Agent, Some(name)) => self.set_agent(&name),
                    (Choosing::Helper, Some(title)) => {
                        let chosen = self.helpers.iter().find(|it| it.title().as_str() == title);
                        if let Some(name) = chosen.map(|helper| helper.name.clone()) {
                            self.open_text(&title, Content::Helper(name));
                        }
                    }
                    (Choosing::Mode, Some(name)) => {
                        if let Ok(mode) = name.parse::<Mode>() {
                            self.set_mode(mode);
                        }
                    }
                    _ => {}
                }
            }
            _ => {
                line_key(&mut page.filter, key);
                page.selected = 0;
            }
        }
        Vec::new()
    }
}

/// A key in a text of one line.
fn line_key(editor: &mut Editor, key: KeyEvent) {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Backspace => editor.backspace(),
        KeyCode::Delete => editor.delete(),
        KeyCode::Left => editor.jump(Move::Left),
        KeyCode::Right => editor.jump(Move::Right),
        KeyCode::Home => editor.jump(Move::Home),
        KeyCode::End => editor.jump(Move::End),
        KeyCode::Char('u') if control => editor.cut_to(Move::Home),
        KeyCode::Char('w') if control => editor.cut_to(Move::WordLeft),
        _ => {
            if let Some(c) = typed(key) {
                editor.insert(c.encode_utf8(&mut [0; 4]));
            }
        }
    }
}
