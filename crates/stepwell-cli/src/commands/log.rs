use std::time::Duration;

use stepwell::sessions::Followed;
use stepwell::sqlite::Access;
use stepwell::store::Span;
use stepwell::{Error, Recorded, Seq, SessionId, Stepwell};
use stepwell_terminal::note;
use stepwell_workspace::doctor;

use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// Prints a session's events as JSON, one per line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, a part of it, its label, or @last.
    session: String,
    /// Follows the session: prints each new event until it stops.
    #[arg(long, short)]
    follow: bool,
    /// Begins with this event.
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    from: u64,
    /// Prints only the last N events.
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "from")]
    last: Option<u64>,
    /// Prints only events of this kind (several may be given).
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    kind: Vec<String>,
}

/// How long one wait for news lasts, before it is asked whether anybody still reads.
const PATIENCE: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Exit> {
    let (well, id) = app.workspace.open_session(&args.session, Access::Read)?;
    let last = well.info(&id)?.head.seq;
    let from = match args.last {
        Some(last_n) => last.get().saturating_sub(last_n) + 1,
        None => args.from.max(1),
    };
    let stream = Stream { well: &well, id: &id, kinds: &args.kind };
    match args.follow {
        true => stream.follow(Seq::new(from), app),
        false => stream.print(Seq::new(from), app),
    }
}

/// Prints the last event of a running session, and what it records from now on, until it
/// stops.
pub(crate) fn follow(well: &Stepwell, id: &SessionId, app: &mut App) -> Result<Exit> {
    let last = well.info(id)?.head.seq;
    Stream { well, id, kinds: &[] }.follow(last, app)
}

/// A session's events on their way out.
struct Stream<'a> {
    well: &'a Stepwell,
    id: &'a SessionId,
    /// Only these kinds; none, all.
    kinds: &'a [String],
}

impl Stream<'_> {
    /// Prints what there is now.
    fn print(&self, from: Seq, app: &mut App) -> Result<Exit> {
        let log = self.well.log(self.id, Span { from, ..Span::ALL });
        match log.each(|event| self.one(&event, app))? {
            None => Ok(Exit::Done),
            Some(damage) => {
                doctor::note_damage(&app.workspace, self.id);
                Err(damage.into_error(self.id).into())
            }
        }
    }

    /// Prints what there is, and what comes, until the session stops.
    fn follow(&self, from: Seq, app: &mut App) -> Result<Exit> {
        let ended = self.follow_on(from, app);
        if let Err(Stopped::Store(Error::Damaged { .. })) = &ended {
            doctor::note_damage(&app.workspace, self.id);
        }
        Ok(ended?)
    }

    fn follow_on(&self, from: Seq, app: &mut App) -> Result<Exit, Stopped> {
        let mut follower = self.well.follow(self.id, from)?;
        loop {
            let mut state = follower.look(|event| Ok::<_, Stopped>(self.one(&event, app)?))?;
            if state == Followed::GoesOn {
                app.out.flush()?;
                if app.out.is_abandoned() {
                    return Err(Failure::ClosedPipe.into());
                }
                state = follower.wait(PATIENCE)?;
            }
            match state {
                Followed::GoesOn => {}
                Followed::Stopped => return Ok(Exit::Done),
                Followed::Erased => {
                    note(format_args!("{} was erased", self.id));
                    return Ok(Exit::Done);
                }
            }
        }
    }

    fn one(&self, event: &Recorded, app: &mut App) -> Result<()> {
        let wanted = self.kinds.is_empty() || self.kinds.iter().any(|it| it == event.event.kind());
        if wanted { app.out.object(event) } else { Ok(()) }
    }
}

/// Why a log is printed no further.
enum Stopped {
    Store(Error),
    Said(Failure),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Said(failure)
    }
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Store(error) => error.into(),
            Stopped::Said(failure) => failure,
        }
    }
}
