//! Keys on pages.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use stepwell::model::Mode;

use super::typed;
use crate::clean::Clean;
use crate::editor::{Editor, Move};
use crate::effect::{Effect, PointsFor, Purpose};
use crate::page::{ChoicePage, Choosing, Content, Doing, Page, PointsPage, TextPage, WAYS};
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
        let session_open = self.session.is_some();
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
            let purpose = Purpose::Imported { session: row.id.clone(), visit: self.visit };
            self.say_briefly("it is read in first");
            return command(&["import", "--yes", "--", &foreign.path], purpose);
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
                match name.is_empty() {
                    true => command(&["label", &id, "--clear"], Purpose::Relist),
                    false => command(&["label", &id, "--", &name], Purpose::Relist),
                }
            }
            (Doing::Tagging(editor), KeyCode::Enter) => {
                let tags = editor.text().to_owned();
                picker.doing = Doing::Typing;
                let mut all = vec!["tag", &id, "--"];
                all.extend(tags.split_whitespace());
                if all.len() > 3 { command(&all, Purpose::Relist) } else { Vec::new() }
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
                Some(id) => command(&["trash", "restore", id.as_str()], Purpose::Restored),
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
        let id = row.id.to_string();
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
            'p' => command(&[if row.pinned { "unpin" } else { "pin" }, &id], Purpose::Relist),
            'f' => {
                let (of, visit) = (row.id.clone(), self.visit);
                command(&["fork", &id], Purpose::Forked { of, visit })
            }
            'y' => {
                self.say_briefly(format!("copied: {id}"));
                vec![Effect::Copy(id)]
            }
            'd' => {
                let session = row.id.clone();
                command(&["delete", &id], Purpose::Deleted(session))
            }
            'c' => command(&["resume", &id, "--with", "claude"], Purpose::Show("hand over")),
            'x' => command(&["resume", &id, "--with", "codex"], Purpose::Show("hand over")),
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
                let Some(of) = self.session.as_ref().map(|card| card.id.clone()) else {
                    return Vec::new();
                };
                let purpose = Purpose::Forked { of, visit: self.visit };
                return self.at_point("fork", "--at", purpose);
            }
            (KeyCode::Char('d'), None) => return self.at_point("diff", "--from", Purpose::Diff),
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
                let flags = WAYS[*chosen].0;
                return self.rewind(flags);
            }
            _ => {}
        }
        Vec::new()
    }

    fn rewind(&mut self, flags: &[&str]) -> Vec<Effect> {
        if self.is_bound() {
            return Vec::new();
        }
        let (Some(Page::Points(page)), Some(card)) = (&self.page, &self.session) else {
            return Vec::new();
        };
        let Some(point) = page.points.get(page.selected) else { return Vec::new() };
        let (id, to) = (card.id.to_string(), point.seq.to_string());
        let purpose = Purpose::Reload(card.id.clone());
        let comes_back = point.kind == "you" && !flags.contains(&"--files");
        self.retype = comes_back.then(|| point.text.to_string());
        self.page = None;
        command(&[&["rewind", &id, "--to", &to][..], flags].concat(), purpose)
    }

    fn at_point(&mut self, verb: &str, flag: &str, purpose: Purpose) -> Vec<Effect> {
        let (Some(Page::Points(page)), Some(card)) = (&self.page, &self.session) else {
            return Vec::new();
        };
        let Some(point) = page.points.get(page.selected) else { return Vec::new() };
        command(&[verb, card.id.as_str(), flag, &point.seq.to_string()], purpose)
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
            && let (Some(card), Some(before)) = (&self.session, self.transcript.first())
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

fn command(arguments: &[&str], purpose: Purpose) -> Vec<Effect> {
    let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
    vec![Effect::Command { arguments, purpose }]
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
