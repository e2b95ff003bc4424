//! Processes that write while servers die, and what is left of what they were told.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use stepwell::store::Span;
use stepwell::{Event, SessionId, Store};

/// A process that writes.
pub(crate) struct Writer {
    child: Child,
    input: Option<ChildStdin>,
    heard: Receiver<(Instant, String)>,
    kept: Kept,
    last: Instant,
}

/// What a writer was told: which message was acknowledged at which seq.
pub(crate) struct Kept {
    pub(crate) session: SessionId,
    seqs: BTreeMap<u64, u64>,
    /// The longest time between two acknowledgements.
    pub(crate) longest: Duration,
}

impl Writer {
    #[expect(clippy::disallowed_methods, reason = "a pause is measured in real time")]
    pub(crate) fn start(url: &str, session: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_stepwell-test-writer"))
            .args([url, session])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, heard) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            out.lines().map_while(Result::ok).all(|line| tell.send((Instant::now(), line)).is_ok())
        });
        let kept = Kept {
            session: session.parse().unwrap(),
            seqs: BTreeMap::new(),
            longest: Duration::ZERO,
        };
        let input = child.stdin.take();
        Self { child, input, heard, kept, last: Instant::now() }
    }

    /// Waits until so many more messages were acknowledged, from now on.
    pub(crate) fn until(&mut self, more: usize) {
        while let Ok((at, line)) = self.heard.try_recv() {
            self.take(at, &line);
        }
        let wanted = self.kept.seqs.len() + more;
        while self.kept.seqs.len() < wanted {
            let heard = self.heard.recv_timeout(Duration::from_secs(120));
            let (at, line) = heard.expect("the writer goes on");
            self.take(at, &line);
        }
    }

    /// Hears it for so long.
    #[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
    pub(crate) fn linger(&mut self, time: Duration) {
        let began = Instant::now();
        while let Some(left) = time.checked_sub(began.elapsed()) {
            let Ok((at, line)) = self.heard.recv_timeout(left) else { return };
            self.take(at, &line);
        }
    }

    fn take(&mut self, at: Instant, line: &str) {
        self.kept.longest = self.kept.longest.max(at.duration_since(self.last));
        self.last = at;
        let parts: Vec<&str> = line.split(' ').collect();
        let ["kept", seq, n] = parts[..] else { panic!("{}: {line}", self.kept.session) };
        self.kept.seqs.insert(n.parse().unwrap(), seq.parse().unwrap());
    }

    /// Ends it, and returns what it was told.
    pub(crate) fn end(mut self) -> Kept {
        drop(self.input.take());
        while let Ok((at, line)) = self.heard.recv_timeout(Duration::from_secs(120)) {
            self.take(at, &line);
        }
        assert!(self.child.wait().unwrap().success());
        self.kept
    }
}

/// Checks a session against what its writer was told. Returns how many acknowledged
/// messages are not where they were acknowledged; that the log is dense, whole and without
/// repetitions holds in any case.
pub(crate) fn check(store: &dyn Store, kept: &Kept) -> usize {
    let id = &kept.session;
    assert!(store.maintain().verify(id).unwrap().is_sound(), "{id}");
    let events = store.events(id, Span::ALL).unwrap().intact(id).unwrap();
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    for (place, event) in events.iter().enumerate() {
        assert_eq!(event.seq.get(), place as u64 + 1, "{id} has a gap");
        if let Event::Message(message) = &event.event {
            let text = message.text();
            let n = text.rsplit(' ').next().unwrap().parse().unwrap();
            assert_eq!(found.insert(n, event.seq.get()), None, "{id} has {text} twice");
        }
    }
    kept.seqs.iter().filter(|(n, seq)| found.get(n) != Some(seq)).count()
}
