//! Reaching a server: the hosts of an address in turn, until one is as it was asked for.
//!
//! The driver goes through them by itself, but waits for ever for one that accepts and then says
//! nothing. Here each has as long as `connect_timeout` says, its greeting included.

use std::net::IpAddr;

use stepwell::clock::{Entropy as _, SystemEntropy};
use tokio::net::lookup_host;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::pooled_conn::{PooledConn, Way};
use super::remembered::{Facts, Remembered};
use crate::address::CONNECT;
use crate::fault::DbError;

/// PostgreSQL's port, unless an address names one.
const PORT: u16 = 5432;

const UNEVEN: &str = "the address has not as many hosts as hostaddr or ports; \
     name one for each host, or a single port";

/// What a server is asked as soon as it is reached.
const FACTS: &str = "SELECT current_setting('transaction_read_only') = 'on', \
     (SELECT system_identifier::text FROM pg_control_system()), CASE WHEN pg_is_in_recovery() \
     THEN (SELECT timeline_id FROM pg_control_checkpoint()) \
     ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int END";

/// Reaches one of the hosts: the one that was good last, or else the first that is as it was asked for.
pub(crate) async fn connect(
    config: &Config,
    tls: &MakeRustlsConnect,
    remembered: &Remembered,
) -> Result<PooledConn, DbError> {
    let longest = config.get_connect_timeout().copied().unwrap_or(CONNECT);
    let mut trouble = DbError::Lost("the address names no host".to_owned());
    let mut hosts = hosts(config)?;
    if let Some(good) = remembered.host() {
        hosts.sort_by_key(|host| host.shown() != good);
    }
    for host in hosts {
        let numbers = match host.numbers().await {
            Ok(numbers) => numbers,
            Err(error) => {
                trouble = DbError::Lost(format!("error connecting to server: {error}"));
                continue;
            }
        };
        for number in in_turn(config, numbers) {
            let one = Way { shown: host.shown(), config: host.alone(config, number) };
            match tokio::time::timeout(longest, one.reach(config, tls, remembered)).await {
                Ok(Ok(reached)) => return Ok(reached),
                Ok(Err(error)) => trouble = error,
                Err(_) => {
                    remembered.forget_host(&one.shown);
                    trouble = DbError::Lost("the server did not answer in time".to_owned());
                }
            }
        }
    }
    Err(trouble)
}

impl Way {
    /// Does the server still answer to a new connection?
    pub(crate) async fn answers(&self, tls: &MakeRustlsConnect) -> bool {
        // One that says no answers, too.
        match self.config.connect(tls.clone()).await {
            Ok(_) => true,
            Err(error) => error.as_db_error().is_some(),
        }
    }

    /// Reaches the server, and asks what it is.
    async fn reach(
        &self,
        asked: &Config,
        tls: &MakeRustlsConnect,
        remembered: &Remembered,
    ) -> Result<PooledConn, DbError> {
        let reached = self.config.connect(tls.clone()).await;
        let (client, driver) = reached.map_err(|error| DbError::of(&error))?;
        let mut pooled = PooledConn::new(client, driver, self.clone());
        let row = pooled.while_moving(pooled.client.query_typed(FACTS, &[])).await;
        let row = row.map_err(|error| DbError::of(&error))?;
        let Some(row) = row.first() else { return Err(DbError::Lost("no answer".to_owned())) };
        let read = |error: tokio_postgres::Error| DbError::of(&error);
        let reads_only: bool = row.try_get(0).map_err(read)?;
        let cluster = row.try_get(1).map_err(read)?;
        let facts = Facts { cluster, timeline: row.try_get(2).map_err(read)? };
        match asked.get_target_session_attrs() {
            TargetSessionAttrs::ReadWrite if reads_only => {
                return Err(DbError::Lost("the server takes no writes".to_owned()));
            }
            TargetSessionAttrs::ReadOnly if !reads_only => {
                return Err(DbError::Lost("the server takes writes".to_owned()));
            }
            TargetSessionAttrs::ReadWrite => {
                if let Some(later) = remembered.later(&facts) {
                    remembered.forget_host(&self.shown);
                    return Err(DbError::Lost(replaced(&facts, later)));
                }
                remembered.note(&self.shown, &facts);
            }
            _ => {}
        }
        pooled.facts = Some(facts);
        Ok(pooled)
    }
}

/// Why a server is not used whose place another one took.
fn replaced(facts: &Facts, later: i32) -> String {
    format!(
        "another server took this one's place: it is on timeline {}, and timeline {later} was seen",
        facts.timeline
    )
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
    /// The host with its port, as it is remembered.
    fn shown(&self) -> String {
        let name = match (&self.name, &self.number) {
            (Some(Host::Tcp(name)), _) => name.clone(),
            (Some(Host::Unix(folder)), _) => folder.display().to_string(),
            (None, number) => number.map(|it| it.to_string()).unwrap_or_default(),
        };
        format!("{name}:{}", self.port)
    }

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
            .channel_binding(config.get_channel_binding());
        alone
    }
}
