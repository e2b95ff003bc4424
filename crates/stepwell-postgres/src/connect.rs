//! Reaching a server: the hosts of an address in turn, until one is as it was asked for.

use std::io;
use std::net::{IpAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use stepwell::{Entropy as _, SystemEntropy};
use tokio_postgres::config::{Host, LoadBalanceHosts, TargetSessionAttrs};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::conn_driver::ConnDriver;
use crate::fault::DbError;
use crate::stream::{Socket, Stream};

/// PostgreSQL's port, unless an address names one.
const PORT: u16 = 5432;

const UNEVEN: &str = "the address has not as many hosts as hostaddr or ports; \
     name one for each host, or a single port";

/// A server that was reached.
pub(crate) struct Reached {
    pub(crate) client: Client,
    pub(crate) driver: ConnDriver,
}

/// Reaches one of the hosts. An answer is waited for as long as `longest`.
pub(crate) fn reach(
    config: &Config,
    tls: &MakeRustlsConnect,
    longest: Duration,
) -> Result<Reached, DbError> {
    let (hosts, numbers) = (config.get_hosts(), config.get_hostaddrs());
    let (ports, count) = (config.get_ports(), hosts.len().max(numbers.len()));
    // Which belongs to which cannot be told, and one might be reached that was not meant.
    if (!hosts.is_empty() && !numbers.is_empty() && hosts.len() != numbers.len())
        || (ports.len() > 1 && ports.len() != count)
    {
        return Err(DbError::Unfit(UNEVEN.to_owned()));
    }
    let mut trouble = DbError::Lost("the address names no host".to_owned());
    for n in in_turn(config, count) {
        let port = ports.get(n).or_else(|| ports.first()).copied().unwrap_or(PORT);
        let place = Place { name: hosts.get(n), number: numbers.get(n).copied(), port };
        match place.reach(config, tls, longest) {
            Ok(reached) => return Ok(reached),
            Err(met) => trouble = met,
        }
    }
    Err(trouble)
}

/// The order in which so many are tried.
fn in_turn(config: &Config, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    if config.get_load_balance_hosts() == LoadBalanceHosts::Random {
        order.sort_by_cached_key(|_| SystemEntropy.random());
    }
    order
}

/// One host of an address.
struct Place<'a> {
    /// As certificates call it.
    name: Option<&'a Host>,
    /// Where it is, if that was said.
    number: Option<IpAddr>,
    port: u16,
}

impl Place<'_> {
    fn reach(
        &self,
        config: &Config,
        tls: &MakeRustlsConnect,
        longest: Duration,
    ) -> Result<Reached, DbError> {
        // A server that says nothing is left for the next one as soon as one that is not there.
        let quick = config.get_connect_timeout().map_or(longest, |quick| longest.min(*quick));
        let lost = |error: io::Error| DbError::Lost(format!("error connecting to server: {error}"));
        let places = match (self.number, self.name) {
            (Some(number), _) => vec![(number, self.port).into()],
            (None, Some(Host::Tcp(name))) => {
                (name.as_str(), self.port).to_socket_addrs().map_err(lost)?.collect()
            }
            (None, Some(Host::Unix(folder))) => {
                let socket = unix(folder, self.port, quick).map_err(lost)?;
                return self.handshake(&socket, config, tls, longest);
            }
            (None, None) => Vec::new(),
        };
        let mut trouble = DbError::Lost("could not resolve any addresses".to_owned());
        for n in in_turn(config, places.len()) {
            let reached = match tcp(places[n], config, quick) {
                Ok(socket) => self.handshake(&socket, config, tls, longest),
                Err(error) => Err(lost(error)),
            };
            match reached {
                Ok(reached) => return Ok(reached),
                Err(met) => trouble = met,
            }
        }
        Err(trouble)
    }

    /// The two sides greet each other.
    fn handshake(
        &self,
        socket: &Arc<Socket>,
        config: &Config,
        tls: &MakeRustlsConnect,
        longest: Duration,
    ) -> Result<Reached, DbError> {
        let name = match self.name {
            Some(Host::Tcp(name)) => name.as_str(),
            _ => "",
        };
        let Ok(tls) = MakeTlsConnect::<Stream>::make_tls_connect(&mut tls.clone(), name);
        let (client, mover) = greeted(config.connect_raw(socket.stream(), tls), socket)?;
        let reached = Reached { client, driver: ConnDriver::new(mover, Arc::clone(socket)) };
        reached.check(config.get_target_session_attrs())?;
        let lost = |error: io::Error| DbError::Lost(error.to_string());
        socket.wait_at_most(longest).map_err(lost)?;
        Ok(reached)
    }
}

/// What comes of a greeting. It reads only when it has sent what the other side waits for.
fn greeted<T>(
    greeting: impl Future<Output = Result<T, tokio_postgres::Error>>,
    socket: &Socket,
) -> Result<T, DbError> {
    let mut greeting = pin!(greeting);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match socket.waiting(|| greeting.as_mut().poll(&mut context)) {
            (Poll::Ready(greeted), _) => return greeted.map_err(|error| DbError::of(&error)),
            (Poll::Pending, true) => {}
            (Poll::Pending, false) => return Err(DbError::Lost("no greeting".to_owned())),
        }
    }
}

impl Reached {
    /// Is it a server of the kind that was asked for?
    fn check(&self, asked: TargetSessionAttrs) -> Result<(), DbError> {
        let unfit = match asked {
            TargetSessionAttrs::ReadWrite => ("on", "database does not allow writes"),
            TargetSessionAttrs::ReadOnly => ("off", "database is not read only"),
            _ => return Ok(()),
        };
        let work = self.client.simple_query("SHOW transaction_read_only");
        let rows =
            self.driver.answer(work).ok_or_else(|| DbError::Lost("it hung up".to_owned()))?;
        let rows = rows.map_err(|error| DbError::of(&error))?;
        let found = rows.iter().find_map(|row| match row {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        match found {
            Some(found) if found != unfit.0 => Ok(()),
            Some(_) => Err(DbError::Lost(unfit.1.to_owned())),
            None => Err(DbError::Lost("it does not say whether it takes writes".to_owned())),
        }
    }
}

fn tcp(place: std::net::SocketAddr, config: &Config, longest: Duration) -> io::Result<Arc<Socket>> {
    let stream = match config.get_connect_timeout() {
        Some(timeout) => TcpStream::connect_timeout(&place, *timeout)?,
        None => TcpStream::connect(place)?,
    };
    let socket = SockRef::from(&stream);
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(config.get_tcp_user_timeout().copied())?;
    if config.get_keepalives() {
        let mut alive = TcpKeepalive::new().with_time(config.get_keepalives_idle());
        if let Some(interval) = config.get_keepalives_interval() {
            alive = alive.with_interval(interval);
        }
        if let Some(retries) = config.get_keepalives_retries() {
            alive = alive.with_retries(retries);
        }
        socket.set_tcp_keepalive(&alive)?;
    }
    Socket::tcp(stream, longest)
}

fn unix(folder: &Path, port: u16, longest: Duration) -> io::Result<Arc<Socket>> {
    let stream = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}")))?;
    Socket::unix(stream, longest)
}
