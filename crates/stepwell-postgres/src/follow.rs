//! Those who follow a store while others write to it.
//!
//! The head is the truth, and is looked at. A notification only says when it is worth a
//! look: it is sent beside the append, never in its transaction, where a lock that all
//! commits share would make them wait for each other, and once for all that happens in a
//! short while.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use stepwell::SessionId;
use stepwell::store::changes::Wait;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_postgres::{AsyncMessage, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::Follow;
use crate::transport::{Pool, listening_config};

/// How long what happened is gathered before others are told.
const GATHER: Duration = Duration::from_millis(20);

/// How often a follower looks that nobody tells anything, and one that is told.
const POLL: Duration = Duration::from_millis(100);
const POLL_BESIDE: Duration = Duration::from_secs(1);

/// How soon a wait ends that is broken off.
const BREAK: Duration = Duration::from_millis(20);

/// The pause before a lost connection is made anew.
const RECONNECT: Duration = Duration::from_millis(500);

/// Those who wait, and the ways in which they are told.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    shared: Arc<Shared>,
    /// Where notifications of the namespace are.
    channel: String,
    /// To the task that tells other processes; absent, they look by themselves.
    tell: Option<UnboundedSender<String>>,
    /// Ends the task that listens, when dropped.
    listens: Mutex<Option<oneshot::Sender<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    news: Mutex<Waiters>,
    came: Condvar,
    /// Does someone listen right now?
    listening: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiters {
    count: u64,
    /// How many there are.
    waiting: usize,
}

impl Shared {
    fn news(&self) -> MutexGuard<'_, Waiters> {
        self.news.lock()
    }

    fn came(&self) {
        let mut news = self.news();
        if news.waiting > 0 {
            news.count += 1;
            self.came.notify_all();
        }
    }
}

/// One who waits for news.
pub(crate) struct Watch<'a> {
    shared: &'a Shared,
    seen: u64,
}

impl Followers {
    /// Followers of a store; the task that tells others runs on the pool's runtime.
    pub(crate) fn new(pool: &Pool, channel: String) -> Self {
        let mut followers = Self { channel, ..Self::default() };
        if pool.address.follow == Follow::Listen {
            let (tell, told) = unbounded_channel();
            pool.spawn(tell_others(
                listening_config(&pool.address),
                pool.tls(),
                followers.channel.clone(),
                told,
            ));
            followers.tell = Some(tell);
        }
        followers
    }

    /// A session has moved on, by this process.
    pub(crate) fn committed(&self, id: &SessionId) {
        self.shared.came();
        if let Some(tell) = &self.tell {
            // The task is gone only with the store.
            let _ = tell.send(id.as_str().to_owned());
        }
    }

    /// Begins to wait for news. What comes from now on is not missed.
    pub(crate) fn watch(&self, pool: &Pool) -> Watch<'_> {
        if self.tell.is_some() {
            self.listen(pool);
        }
        let mut news = self.shared.news();
        news.waiting += 1;
        Watch { shared: &self.shared, seen: news.count }
    }

    /// Starts to listen, once.
    fn listen(&self, pool: &Pool) {
        let mut listens = self.listens.lock();
        if listens.is_none() {
            let (end, ended) = oneshot::channel();
            let work = keep_listening(
                listening_config(&pool.address),
                pool.tls(),
                self.channel.clone(),
                Arc::clone(&self.shared),
            );
            pool.spawn(async move {
                tokio::select! {
                    () = work => {}
                    _ = ended => {}
                }
            });
            *listens = Some(end);
        }
    }
}

impl Watch<'_> {
    /// Waits for news, or until it is time to look again.
    pub(crate) fn wait(&mut self, started: Instant, wait: Wait<'_>) {
        let poll = match self.shared.listening.load(Ordering::Relaxed) {
            true => POLL_BESIDE,
            false => POLL,
        };
        let turn = Wait { longest: wait.longest.min(started.elapsed() + poll), ..wait };
        let mut news = self.shared.news();
        let mut is_seen = |news: &mut Waiters| news.count == self.seen;
        loop {
            let left = turn.left(started).min(BREAK);
            let waited = self.shared.came.wait_while_for(&mut news, &mut is_seen, left);
            if !waited.timed_out() || turn.left(started).is_zero() {
                break;
            }
        }
        self.seen = news.count;
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.shared.news().waiting -= 1;
    }
}

/// Tells other processes which sessions moved on, a short while's together.
async fn tell_others(
    config: Config,
    tls: MakeRustlsConnect,
    channel: String,
    mut told: UnboundedReceiver<String>,
) {
    let mut client = None;
    while let Some(first) = told.recv().await {
        let mut sessions = BTreeSet::from([first]);
        tokio::time::sleep(GATHER).await;
        while let Ok(next) = told.try_recv() {
            sessions.insert(next);
        }
        let sessions: Vec<String> = sessions.into_iter().collect();
        if client.as_ref().is_none_or(tokio_postgres::Client::is_closed) {
            client = match config.connect(tls.clone()).await {
                Ok((made, connection)) => {
                    tokio::spawn(connection);
                    Some(made)
                }
                // Those who follow look by themselves until there is a server again.
                Err(_) => None,
            };
        }
        if let Some(client) = &client {
            let sql = "SELECT pg_notify($1, s) FROM unnest($2::text[]) s";
            let params = crate::transport::params![channel => TEXT, sessions => TEXT_ARRAY];
            if let Err(error) = client.query_typed(sql, params).await {
                tracing::debug!(error = %crate::fault::said(&error), "followers_not_told");
            }
        }
    }
}

/// Listens, on a connection of its own, for as long as the store is open.
async fn keep_listening(
    config: Config,
    tls: MakeRustlsConnect,
    channel: String,
    shared: Arc<Shared>,
) {
    loop {
        if let Ok((client, mut connection)) = config.connect(tls.clone()).await {
            let ask = format!("LISTEN \"{channel}\"");
            let ask = client.batch_execute(&ask);
            let hear = std::future::poll_fn(|context| connection.poll_message(context));
            tokio::pin!(ask);
            let mut asked = false;
            let mut hear = Box::pin(hear);
            loop {
                tokio::select! {
                    done = &mut ask, if !asked => {
                        asked = true;
                        if done.is_err() {
                            break;
                        }
                        shared.listening.store(true, Ordering::Relaxed);
                    }
                    message = &mut hear => {
                        match message {
                            Some(Ok(AsyncMessage::Notification(_))) => shared.came(),
                            Some(Ok(_)) => {}
                            Some(Err(_)) | None => break,
                        }
                    }
                }
            }
            shared.listening.store(false, Ordering::Relaxed);
        }
        tokio::time::sleep(RECONNECT).await;
    }
}
