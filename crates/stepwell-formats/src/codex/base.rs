//! Where a rollout begins that goes on from another one: the lines that it shares with it.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::json::fields::Fields;
use crate::read::input::{Input, Lines};

/// How many rollouts may go on from each other.
const MAX_DEPTH: usize = 64;

/// The end of the lines that a rollout shares with another one.
#[derive(Clone, Debug)]
pub(super) struct Base {
    thread: String,
    ordinal: u64,
    offset: u64,
}

impl Base {
    /// What a rollout says of where it goes on from.
    pub(super) fn of(meta: &Fields<'_>) -> Option<Self> {
        let base = meta.object("history_base")?;
        Some(Self {
            thread: base.text("thread_id")?.into_owned(),
            ordinal: base.get("end_ordinal_exclusive").unwrap_or(u64::MAX),
            offset: base.get("end_byte_offset").unwrap_or(u64::MAX),
        })
    }

    /// Does a line of the other rollout belong to this one as well?
    pub(super) fn shares(&self, line: &Fields<'_>, offset: u64) -> bool {
        match line.get::<u64>("ordinal") {
            Some(ordinal) => ordinal < self.ordinal,
            None => offset < self.offset,
        }
    }
}

/// One rollout whose front is shared.
pub(super) struct Shared {
    pub(super) path: PathBuf,
    pub(super) lines: Lines,
    pub(super) end: Base,
}

/// The rollouts that one goes on from, the first one first. What is not here ends the list.
pub(super) fn chain(
    input: &Input,
    path: &Path,
    base: Base,
) -> Result<(Vec<Shared>, Option<String>)> {
    let mut chain: Vec<Shared> = Vec::new();
    let (mut at, mut wanted) = (path.to_owned(), Some(base));
    while let Some(base) = wanted.take() {
        let found = find(input, &at, &base.thread)?;
        let Some(found) = found.filter(|found| {
            chain.len() < MAX_DEPTH && chain.iter().all(|known| known.path != *found)
        }) else {
            chain.reverse();
            return Ok((chain, Some(base.thread)));
        };
        wanted = first_base(input, &found)?;
        at.clone_from(&found);
        chain.push(Shared { lines: input.lines(&found)?, path: found, end: base });
    }
    chain.reverse();
    Ok((chain, None))
}

fn first_base(input: &Input, path: &Path) -> Result<Option<Base>> {
    let mut lines = input.glance(path)?;
    let Some(line) = lines.next_line()? else { return Ok(None) };
    let meta = line.object().ok().and_then(|(_, line)| line.object("payload"));
    Ok(meta.and_then(|meta| Base::of(&meta)))
}

/// The newest rollout of that name that is older than this one. Their names begin with when they
/// were made. After a revert a thread goes on in a rollout with a name of its own behind the
/// thread's: `<thread>_<rollout>`.
fn find(input: &Input, path: &Path, thread: &str) -> Result<Option<PathBuf>> {
    let own = name(path);
    let mut newest: Option<PathBuf> = None;
    for file in nearby(input, path)? {
        let found = name(&file);
        let rest = found.find(thread).map(|at| &found[at + thread.len()..]);
        let is_thread = rest.is_some_and(|rest| rest.starts_with('.'));
        let older = found < own && newest.as_deref().is_none_or(|newest| name(newest) < found);
        if is_thread && older {
            newest = Some(file);
        }
    }
    Ok(newest)
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The rollouts in the same folder and in those of other days.
fn nearby(input: &Input, path: &Path) -> Result<Vec<PathBuf>> {
    let is_number = |folder: &Path| {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
    };
    let Some(day) = path.parent() else { return Ok(Vec::new()) };
    let dated = day.ancestors().take(3).all(is_number);
    let Some(root) = day.ancestors().nth(3).filter(|_| dated) else { return input.list(day) };
    let mut files = Vec::new();
    for year in input.list(root)?.into_iter().filter(|it| is_number(it)) {
        for month in input.list(&year)? {
            for day in input.list(&month)? {
                files.extend(input.list(&day)?);
            }
        }
    }
    Ok(files)
}
