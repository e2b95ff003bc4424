//! Reaching a server: the hosts of an address in turn, until one is as it was asked for.
//!
//! The driver goes through them by itself, but waits for ever for one that accepts and then says
//! nothing. Here each has as long as `connect_timeout` says, its greeting included.

use std::net::IpAddr;
use std::time::Duration;

use stepwell::{Entropy as _, SystemEntropy};
use tokio::net::lookup_host;
use tokio_postgres::config::{Host, LoadBalanceHosts};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::fault::DbError;

/// PostgreSQL's port, unless an address names one.
const PORT: u16 = 5432;

/// How long one host is waited for, unless an address says so.
const CONNECT: Duration = Duration::from_secs(5);

const UNEVEN: &str = "the address has not as many hosts as hostaddr or ports; \
     name one for each host, or a single port";

/// The driver's half of a connection that moves its bytes.
pub(crate) type Driver = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Reaches one of the hosts.
pub(crate) async fn connect(
    config: &Config,
    tls: &MakeRustlsConnect,
) -> Result<(Client, Driver), DbError> {
    let longest = config.get_connect_timeout().copied().unwrap_or(CONNECT);
    let mut trouble = DbError::Lost("the address names no host".to_owned());
    for host in hosts(config)? {
        let numbers = match host.numbers().await {
            Ok(numbers) => numbers,
            Err(error) => {
                trouble = DbError::Lost(format!("error connecting to server: {error}"));
                continue;
            }
        };
        for number in in_turn(config, numbers) {
            let one = host.alone(config, number);
            match tokio::time::timeout(longest, one.connect(tls.clone())).await {
                Ok(Ok(reached)) => return Ok(reached),
                Ok(Err(error)) => trouble = DbError::of(&error),
                Err(_) => trouble = DbError::Lost("the server did not answer in time".to_owned()),
            }
        }
    }
    Err(trouble)
}

/// One host of an address.
struct OneHost {
    /// As certificates call it.
    name: Option<Host>,
    /// Where it is, if that was said.
    number: Option<IpAddr>,
    port: u16,
}

/// The hosts of an address, in the order in which they are tried.
fn hosts(config: &Config) -> Result<Vec<OneHost>, DbError> {
    let (names, numbers) = (config.get_hosts(), config.get_hostaddrs());
    let (ports, count) = (config.get_ports(), names.len().max(numbers.len()));
    // Which belongs to which cannot be told, and one might be reached that was not meant.
    if (!names.is_empty() && !numbers.is_empty() && names.len() != numbers.len())
        || (ports.len() > 1 && ports.len() != count)
    {
        return Err(DbError::Unfit(UNEVEN.to_owned()));
    }
    let one = |n: usize| OneHost {
        name: names.get(n).cloned(),
        number: numbers.get(n).copied(),
        port: ports.get(n).or_else(|| ports.first()).copied().unwrap_or(PORT),
    };
    Ok(in_turn(config, (0..count).map(one).collect()))
}

/// The order in which these are tried.
fn in_turn<T>(config: &Config, mut these: Vec<T>) -> Vec<T> {
    if config.get_load_balance_hosts() == LoadBalanceHosts::Random {
        these.sort_by_cached_key(|_| SystemEntropy.random());
    }
    these
}

impl OneHost {
    /// Its numbers; none for the path of a socket.
    async fn numbers(&self) -> std::io::Result<Vec<Option<IpAddr>>> {
        match (self.number, &self.name) {
            (None, Some(Host::Tcp(name))) => {
                let found = lookup_host((name.as_str(), self.port)).await?;
                Ok(found.map(|at| Some(at.ip())).collect())
            }
            (number, _) => Ok(vec![number]),
        }
    }

    /// The same address with this host alone.
    fn alone(&self, config: &Config, number: Option<IpAddr>) -> Config {
        let mut alone = Config::new();
        match &self.name {
            Some(Host::Tcp(name)) => {
                alone.host(name);
            }
            Some(Host::Unix(folder)) => {
                alone.host_path(folder);
            }
            None => {}
        }
        if let Some(number) = number {
            alone.hostaddr(number);
        }
        alone.port(self.port);
        if let Some(user) = config.get_user() {
            alone.user(user);
        }
        if let Some(password) = config.get_password() {
            alone.password(password);
        }
        if let Some(name) = config.get_dbname() {
            alone.dbname(name);
        }
        if let Some(options) = config.get_options() {
            alone.options(options);
        }
        if let Some(name) = config.get_application_name() {
            alone.application_name(name);
        }
        if let Some(timeout) = config.get_connect_timeout() {
            alone.connect_timeout(*timeout);
        }
        if let Some(timeout) = config.get_tcp_user_timeout() {
            alone.tcp_user_timeout(*timeout);
        }
        if let Some(interval) = config.get_keepalives_interval() {
            alone.keepalives_interval(interval);
        }
        if let Some(retries) = config.get_keepalives_retries() {
            alone.keepalives_retries(retries);
        }
        alone
            .keepalives(config.get_keepalives())
            .keepalives_idle(config.get_keepalives_idle())
            .ssl_mode(config.get_ssl_mode())
            .ssl_negotiation(config.get_ssl_negotiation())
            .channel_binding(config.get_channel_binding())
            .target_session_attrs(config.get_target_session_attrs());
        alone
    }
}
