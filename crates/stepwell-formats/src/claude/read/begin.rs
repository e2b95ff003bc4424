//! The beginning of a transcript: its lines wait until it is known what was asked.

use stepwell::SessionId;

use super::Reading;
use crate::Result;
use crate::claude::SYSTEM;
use crate::claude::kept::kept_line;
use crate::claude::said::{command, is_conversation, is_kept, kept_task, opening, task};
use crate::json::fields::Fields;
use crate::read::mark::mark_within;
use crate::read::neutral::{Item, Wanted};

/// How many lines may come before the conversation, and of how many bytes, until a session
/// is begun without knowing what was asked.
const MAX_FRONT: usize = 200;
const MAX_FRONT_BYTES: usize = 4 << 20;

/// What the line of a compaction's summary has.
const SUMMARY: &str = "\"isCompactSummary\":true";

impl Reading<'_> {
    /// Begins the session, once it is known what was asked. Lines before that wait.
    pub(super) fn begin(&mut self, text: &str, fields: &Fields<'_>) -> Result<bool> {
        let kind = fields.text("type").unwrap_or_default().into_owned();
        let asked = task(fields);
        // Behind a summary, what is asked comes after what was preserved.
        let is_behind = || self.front.iter().any(|text| text.contains(SUMMARY));
        let begins = asked.is_some() || kind == "assistant" && !is_behind();
        let full = self.front.len() >= MAX_FRONT || self.front_bytes > MAX_FRONT_BYTES;
        let speaks = is_conversation(fields) || is_kept(fields);
        if !(begins || full && speaks) {
            self.front_bytes += text.len();
            // What comes before any conversation is kept, within bounds.
            if self.front_bytes <= 2 * MAX_FRONT_BYTES {
                self.front.push(text.to_owned());
            }
            return Ok(false);
        }
        self.open(fields, asked)
    }

    /// Begins a session in which nothing was asked: one without a conversation, of which only what
    /// has no other place in a transcript was written, or one with nothing but a summary.
    pub(super) fn begin_late(&mut self) -> Result<bool> {
        let kept = |text: &&String| {
            let is_line =
                |fields: Fields<'_>| is_kept(&fields) || fields.is_true("isCompactSummary");
            Fields::parse(text).is_ok_and(is_line)
        };
        let Some(text) = self.front.iter().find(kept).cloned() else { return Ok(false) };
        let fields = Fields::parse(&text).unwrap_or_default();
        self.open(&fields, None)?;
        Ok(true)
    }

    /// Tells of the session, and of what waited for that.
    fn open(&mut self, fields: &Fields<'_>, asked: Option<String>) -> Result<bool> {
        let waiting = || self.front.iter().filter_map(|text| Fields::parse(text).ok());
        let asked = asked.or_else(|| waiting().find_map(|line| kept_task(&line)));
        let asked = asked.or_else(|| waiting().find_map(|line| command(&line)));
        let mut opening = opening(self.path, self.parent, fields, asked.unwrap_or_default());
        let front = self.front.iter().filter_map(|text| Fields::parse(text).ok());
        opening.continues = front.into_iter().find_map(|line| mark_within(&line));
        let meta = self.meta(opening.parent.is_some());
        let meta = meta.as_deref();
        if let Some(meta) = meta.and_then(|meta| Fields::parse(meta).ok()) {
            opening.created.agent = meta.text("agentType").unwrap_or_default().into_owned();
        }
        self.id = Some(opening.id.clone());
        if let Some(session) = self.sink.keeper(&opening)? {
            self.told = Wanted::Known;
            self.meet(&session)?;
            return Ok(false);
        }
        self.told = self.sink.begin(opening)?;
        if self.told == Wanted::Known {
            return Ok(false);
        }
        if let Some(meta) = meta {
            self.push(Item::of_session(SYSTEM, meta))?;
        }
        for text in std::mem::take(&mut self.front) {
            if let Ok(fields) = Fields::parse(&text) {
                self.emit(&text, &fields)?;
            }
        }
        Ok(true)
    }

    /// Brings what the file has to a session that the SDK keeps here, line by line.
    fn meet(&mut self, session: &SessionId) -> Result<()> {
        let mut lines = self.input.lines(self.path)?;
        self.sink.meet(session, &mut || {
            while let Some(line) = lines.next_line()? {
                // What is wrong with a line was told, or it is no line that could be kept.
                let kept = line.object().ok();
                if let Some(kept) = kept.and_then(|(text, fields)| kept_line(text, &fields)) {
                    return Ok(Some(kept));
                }
            }
            Ok(None)
        })
    }

    /// What a subagent's own file says of it.
    fn meta(&mut self, is_subagent: bool) -> Option<String> {
        let path = self.path.with_extension("meta.json");
        if !is_subagent || !path.exists() {
            return None;
        }
        match self.input.text(&path) {
            Ok(text) => Some(text),
            Err(error) => {
                self.warn(None, &error.to_string());
                None
            }
        }
    }
}
