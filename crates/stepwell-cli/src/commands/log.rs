use std::time::Duration;

use stepwell::{
    Access, ChangeKind, Error, Notice, Recorded, Seq, SessionChange, SessionId, Span, Stepwell,
};

use crate::app::{App, each_event};
use crate::failure::{Exit, Failure, Result};
use crate::output::note;
use crate::wire::is_over;

/// Prints a session's events as JSON, one per line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// Goes on with each new event, until the session stops.
    #[arg(long, short)]
    follow: bool,
    /// Begins with this event.
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    from: u64,
    /// Prints only the last so many.
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "from")]
    last: Option<u64>,
    /// Prints only events of this kind (several may be given).
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    kind: Vec<String>,
}

/// How long one wait for news lasts, before it is asked whether anybody still reads.
const PATIENCE: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, id) = app.session(&args.session, Access::Read)?;
    let last = well.standing(&id)?.head.seq;
    let from = match args.last {
        Some(last_n) => last.get().saturating_sub(last_n) + 1,
        None => args.from.max(1),
    };
    let end = if args.follow { End::WhenItStops } else { End::Now };
    Stream { well: &well, id: &id, kinds: &args.kind, end }.print(Seq::new(from), app)
}

/// Prints the last event of a running session, and what it records from now on, until it
/// stops.
pub(crate) fn follow(well: &Stepwell, id: &SessionId, app: &mut App) -> Result<Exit> {
    let last = well.standing(id)?.head.seq;
    Stream { well, id, kinds: &[], end: End::WhenItStops }.print(last, app)
}

/// How far a log is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// As far as it goes now.
    Now,
    /// Until the session stops.
    WhenItStops,
}

/// A session's events on their way out.
struct Stream<'a> {
    well: &'a Stepwell,
    id: &'a SessionId,
    /// Only these kinds; none, all.
    kinds: &'a [String],
    end: End,
}

impl Stream<'_> {
    fn print(&self, mut next: Seq, app: &mut App) -> Result<Exit> {
        let Self { well, id, end, .. } = *self;
        // Made before the first look, so that nothing comes between.
        let news = match end {
            End::Now => None,
            End::WhenItStops => Some(well.subscribe_to(id)?),
        };
        loop {
            // Read before the events, so that one that was recorded since is not missed.
            let stopped = end == End::Now || has_stopped(well, id)?;
            let damage = each_event(well, id, Span { from: next, ..Span::ALL }, |event| {
                next = event.seq.next();
                self.one(&event, app)
            });
            let damage = match damage {
                // It was erased while we followed it.
                Err(_) if end == End::WhenItStops && !well.store().exists(id)? => None,
                other => other?,
            };
            if let Some(damage) = damage {
                app.remember_damage(id);
                return Err(damage.into_error(id).into());
            }
            if stopped {
                return Ok(Exit::Done);
            }
            app.out.flush()?;
            if app.out.is_abandoned() {
                return Err(Failure::ClosedPipe);
            }
            let removed = match &news {
                Some(news) => news.next(PATIENCE)?.is_some_and(|notice| is_removal(&notice)),
                None => false,
            };
            if removed && !well.store().exists(id)? {
                note(format_args!("{id} was erased"));
                return Ok(Exit::Done);
            }
        }
    }

    fn one(&self, event: &Recorded, app: &mut App) -> Result<()> {
        let wanted = self.kinds.is_empty() || self.kinds.iter().any(|it| it == event.event.kind());
        if wanted { app.out.object(event) } else { Ok(()) }
    }
}

fn is_removal(notice: &Notice) -> bool {
    matches!(notice, Notice::Changed(SessionChange { kind: ChangeKind::Removed, .. }))
}

fn has_stopped(well: &Stepwell, id: &SessionId) -> Result<bool> {
    match well.standing(id) {
        Ok(standing) => Ok(is_over(standing.head.status) || standing.trashed_at.is_some()),
        Err(Error::NoSession(_)) => Ok(true),
        Err(error) => Err(error.into()),
    }
}
