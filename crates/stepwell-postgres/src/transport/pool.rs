//! Connections to the server, shared by the threads of a process.

use std::cell::Cell;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use stepwell::clock::{Clock, SystemClock};
use stepwell::model::Time;
use stepwell::{Error, Result};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::connect::connect;
use super::pooled_conn::{PooledConn, Way};
use super::remembered::Remembered;
use super::wait::wait;
use crate::address::{Address, Roots, Statements};
use crate::fault::DbError;

/// The pauses between two attempts to reach a server.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A value with its type, so that a statement need not be prepared to be sent.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// A statement with its parameters.
#[derive(Clone, Copy)]
pub(crate) struct Statement<'a> {
    pub(crate) sql: &'a str,
    pub(crate) params: &'a [Param<'a>],
}

impl<'a> Statement<'a> {
    /// One without parameters.
    pub(crate) const fn plain(sql: &'a str) -> Self {
        Self { sql, params: &[] }
    }
}

/// Values with their types: `params![key => INT8, id => TEXT]`.
macro_rules! params {
    ($($value:expr => $kind:ident),* $(,)?) => {
        &[$((&$value as &(dyn tokio_postgres::types::ToSql + Sync),
             tokio_postgres::types::Type::$kind)),*]
    };
}
pub(crate) use params;

/// The way to the server.
pub(crate) struct Pool {
    /// As many as may be in use at the same time; whoever came first is served first.
    permits: Arc<Semaphore>,
    shared: Arc<Shared>,
    /// Behind an option so that it can be shut down without waiting, from any thread.
    runtime: Option<Runtime>,
    pub(crate) address: Address,
    /// Has the server shown that it keeps no prepared statements for us?
    plain: AtomicBool,
    pub(crate) time: TimeSource,
}

/// What connections need beside their server.
struct Shared {
    idle: Idle,
    remembered: Remembered,
    tls: MakeRustlsConnect,
    handle: Handle,
}

impl Shared {
    /// Does a server still answer to a new connection? If not, the others are tried first from now on.
    fn answers(&self, way: &Way) -> bool {
        let _entered = self.handle.enter();
        let answers = wait(way.answers(&self.tls), SILENCE).unwrap_or(false);
        if !answers {
            self.remembered.forget_host(&way.shown);
        }
        answers
    }
}

/// Connections that nobody uses.
#[derive(Default)]
struct Idle(Mutex<Vec<PooledConn>>);

impl Idle {
    fn lock(&self) -> MutexGuard<'_, Vec<PooledConn>> {
        self.0.lock()
    }

    /// One that is still open, as far as is known, and leads to no server whose place another one
    /// took. The last one used is the likeliest to be open.
    fn take(&self, remembered: &Remembered) -> Option<PooledConn> {
        let mut idle = self.lock();
        let is_old =
            |it: &PooledConn| it.facts.as_ref().is_some_and(|it| remembered.later(it).is_some());
        std::iter::from_fn(|| idle.pop()).find(|it| it.is_open() && !is_old(it))
    }
}

/// Whose clock counts.
pub(crate) enum TimeSource {
    /// The server's: this machine's, and how many microseconds the server's is ahead.
    Server(AtomicI64),
    /// A test's.
    Given(Arc<dyn Clock>),
}

impl TimeSource {
    /// Now, as well as it is known without asking.
    pub(crate) fn now(&self) -> Time {
        match self {
            Self::Server(ahead) => {
                let here = SystemClock.now().as_micros();
                Time::from_micros(here.saturating_add(ahead.load(Ordering::Relaxed)))
            }
            Self::Given(clock) => clock.now(),
        }
    }

    /// The server told its time. Returns the one that counts.
    pub(crate) fn told(&self, server: SystemTime) -> Time {
        match self {
            Self::Server(ahead) => {
                let server = micros(server);
                let here = SystemClock.now().as_micros();
                ahead.store(server.saturating_sub(here), Ordering::Relaxed);
                Time::from_micros(server)
            }
            Self::Given(clock) => clock.now(),
        }
    }
}

fn micros(time: SystemTime) -> i64 {
    let whole = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => whole(after),
        Err(before) => -whole(before.duration()),
    }
}

/// The server's time. It is sent as it is: to make a number of it there costs an append a tenth.
pub(crate) const SERVER_TIME: &str = "clock_timestamp()";

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pool").field(&self.address).finish()
    }
}

impl Pool {
    pub(crate) fn new(address: Address, time: TimeSource, servers: Option<&Path>) -> Result<Self> {
        let fault = |what: String| Error::Unsupported { path: address.shown().to_owned(), what };
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("stepwell-postgres")
            .enable_all()
            .build()
            .map_err(|error| fault(format!("its thread could not be started: {error}")))?;
        let tls = tls(&address.roots).map_err(fault)?;
        let permits = Arc::new(Semaphore::new(address.connections));
        let plain = AtomicBool::new(address.statements == Statements::Plain);
        let remembered = Remembered::of(servers, address.shown());
        let (idle, handle) = (Idle::default(), runtime.handle().clone());
        let shared = Arc::new(Shared { idle, remembered, tls, handle });
        Ok(Self { permits, shared, runtime: Some(runtime), address, plain, time })
    }

    /// Who vouches for servers.
    pub(crate) fn tls(&self) -> MakeRustlsConnect {
        self.shared.tls.clone()
    }

    /// The address as it may be shown.
    pub(crate) fn path(&self) -> &Path {
        self.address.shown()
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("only dropping the pool takes it")
    }

    /// Does some work on the store's thread.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime().spawn(work);
    }

    /// No prepared statements from now on.
    pub(crate) fn stop_preparing(&self) {
        self.plain.store(true, Ordering::Relaxed);
    }

    /// A connection, after as many attempts as the patience allows.
    pub(crate) fn connect(&self, patience: &mut Patience) -> Result<Conn, DbError> {
        loop {
            match self.connected() {
                Err(DbError::Lost(_)) if patience.pause() => {}
                done => return done,
            }
        }
    }

    fn connected(&self) -> Result<Conn, DbError> {
        let longest = self.address.answer;
        let permit = wait(Arc::clone(&self.permits).acquire_owned(), longest);
        let Some(Ok(permit)) = permit else {
            return Err(DbError::Lost("no connection came free".to_owned()));
        };
        let idle = self.shared.idle.take(&self.shared.remembered);
        let idle_before = idle.is_some();
        let pooled = match idle {
            Some(pooled) => pooled,
            None => self.make()?,
        };
        Ok(Conn {
            pooled: Some(pooled),
            untried: Cell::new(idle_before),
            spoiled: Cell::new(false),
            prepare: !self.plain.load(Ordering::Relaxed),
            longest,
            shared: Arc::clone(&self.shared),
            _permit: permit,
        })
    }

    fn make(&self) -> Result<PooledConn, DbError> {
        // A connection that is made belongs to the runtime; the guard lends it.
        let _entered = self.runtime().enter();
        let made = connect(&self.address.config, &self.shared.tls, &self.shared.remembered);
        let made = wait(made, self.address.answer);
        made.unwrap_or_else(|| Err(DbError::Lost("no server answered in time".to_owned())))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.idle.lock().clear();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// How long to go on trying.
pub(crate) struct Patience {
    began: Instant,
    longest: Duration,
    next: Duration,
}

impl Patience {
    #[expect(clippy::disallowed_methods, reason = "a wait is bounded in real time")]
    pub(crate) fn new(longest: Duration) -> Self {
        Self { began: Instant::now(), longest, next: SHORTEST_PAUSE }
    }

    /// Waits a little before the next attempt. Is there still patience left?
    #[expect(clippy::disallowed_methods, reason = "a server that comes back tells nobody")]
    pub(crate) fn pause(&mut self) -> bool {
        let left = self.longest.saturating_sub(self.began.elapsed());
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(self.next.min(left));
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        true
    }
}

/// Tells a statement with the types of its values, and never the values.
fn traced(sql: &str, params: &[Param<'_>]) {
    if tracing::enabled!(target: "stepwell_postgres::statement", tracing::Level::TRACE) {
        let types: Vec<&str> = params.iter().map(|(_, kind)| kind.name()).collect();
        let types = types.join(", ");
        tracing::trace!(target: "stepwell_postgres::statement", sql, types);
    }
}

/// How long an answer is waited for before somebody looks whether the server still answers at all,
/// and how long that look takes at most.
const SILENCE: Duration = Duration::from_secs(2);

/// One connection, for as long as a transaction takes.
pub(crate) struct Conn {
    pooled: Option<PooledConn>,
    /// Was it idle before, and has it not answered since? Then it may have ended meanwhile, and
    /// nobody has noticed yet.
    untried: Cell<bool>,
    /// Is something in flight on it that nobody waits for? Then it must not be used again.
    spoiled: Cell<bool>,
    prepare: bool,
    /// How long an answer is waited for.
    longest: Duration,
    shared: Arc<Shared>,
    /// Given back behind the connection.
    _permit: OwnedSemaphorePermit,
}

impl Conn {
    fn pooled(&self) -> &PooledConn {
        self.pooled.as_ref().expect("only dropping the connection takes it")
    }

    /// May it have ended while it was idle? Then the loss says nothing of the server, and another
    /// connection is worth a try at once.
    pub(crate) fn was_stale(&self) -> bool {
        self.untried.get()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.pooled().client
    }

    /// Asks a question in one round trip.
    pub(crate) fn query(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, DbError> {
        traced(sql, params);
        self.answer(self.client().query_typed(sql, params))
    }

    /// Asks two questions, in order, in one round trip. The second sees what happened
    /// while the first waited for a lock.
    pub(crate) fn query_both(
        &self,
        first: Statement<'_>,
        second: Statement<'_>,
    ) -> Result<(Vec<Row>, Vec<Row>), DbError> {
        traced(first.sql, first.params);
        traced(second.sql, second.params);
        let client = self.client();
        self.answer(async {
            let first = client.query_typed(first.sql, first.params);
            let second = client.query_typed(second.sql, second.params);
            let (first, second) = futures_util::future::join(first, second).await;
            Ok((first?, second?))
        })
    }

    /// Asks a question that is asked all the time: the server plans it once.
    pub(crate) fn query_hot(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, DbError> {
        if !self.prepare {
            return self.query(sql, params);
        }
        traced(sql, params);
        self.answer(async {
            let statement =
                self.pooled().prepared(sql, params.iter().map(|(_, kind)| kind)).await?;
            let values: Vec<&(dyn ToSql + Sync)> = params.iter().map(|(value, _)| *value).collect();
            self.client().query(&statement, &values).await
        })
    }

    /// The same of a statement that answers with no rows, but with how many it wrote.
    pub(crate) fn execute_hot(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, DbError> {
        traced(sql, params);
        if !self.prepare {
            return self.answer(self.client().execute_typed(sql, params));
        }
        self.answer(async {
            let statement =
                self.pooled().prepared(sql, params.iter().map(|(_, kind)| kind)).await?;
            self.client().execute_raw(&statement, params.iter().map(|(value, _)| *value)).await
        })
    }

    /// Runs statements that have no values and no answer.
    pub(crate) fn run(&self, sql: &str) -> Result<(), DbError> {
        self.answer(self.client().batch_execute(sql))
    }

    /// The answer of some work with the client.
    pub(crate) fn answer<T>(
        &self,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, DbError> {
        match self.wait(self.pooled().while_moving(work)) {
            Some(Ok(answer)) => {
                self.untried.set(false);
                Ok(answer)
            }
            Some(Err(error)) => {
                let trouble = DbError::of(&error);
                if matches!(trouble, DbError::Lost(_) | DbError::Unprepared(_)) {
                    self.spoiled.set(true);
                }
                Err(trouble)
            }
            None => {
                self.spoiled.set(true);
                self.untried.set(false);
                Err(DbError::Lost("no answer in time".to_owned()))
            }
        }
    }

    /// Waits for an answer, as long as the server is there: one that hangs says nothing, and does not
    /// end its connections either.
    fn wait<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (mut work, mut left) = (pin!(work), self.longest);
        while !left.is_zero() {
            let some = SILENCE.min(left);
            if let Some(answer) = wait(work.as_mut(), some) {
                return Some(answer);
            }
            left -= some;
            if !self.shared.answers(&self.pooled().way) {
                return None;
            }
        }
        None
    }

    /// Leaves the transaction, whatever came of it.
    pub(crate) fn roll_back(&self) {
        if !self.spoiled.get() && self.run("ROLLBACK").is_err() {
            self.spoiled.set(true);
        }
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        // Otherwise it is closed: what is in flight is not waited for, and what a panic left open
        // is not gone on with.
        if let Some(pooled) = self.pooled.take()
            && !self.spoiled.get()
            && !std::thread::panicking()
        {
            self.shared.idle.lock().push(pooled);
        }
    }
}

/// A connection of its own, for listening.
pub(crate) fn listening_config(address: &Address) -> Config {
    address.direct.clone().unwrap_or_else(|| address.config.clone())
}

fn tls(roots: &Roots) -> Result<MakeRustlsConnect, String> {
    let mut store = rustls::RootCertStore::empty();
    match roots {
        Roots::System => {
            let found = rustls_native_certs::load_native_certs();
            store.add_parsable_certificates(found.certs);
        }
        Roots::File(path) => {
            let fault = |what: String| format!("sslrootcert {}: {what}", path.display());
            let certs = CertificateDer::pem_file_iter(path).map_err(|e| fault(e.to_string()))?;
            for cert in certs {
                let cert = cert.map_err(|error| fault(error.to_string()))?;
                store.add(cert).map_err(|error| fault(error.to_string()))?;
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
