//! Where a store is, read from its address; what of it may be shown.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use stepwell::{Error, Result};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// The namespace of those who name none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Connections that one process holds, unless the address says otherwise. A server takes
/// a hundred by default, and several machines share it.
const CONNECTIONS: usize = 16;

/// How long a server that is gone is waited for: a failover takes its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long one is looked for when a store is opened: whoever opens it learns soon that it
/// is not there.
const OPENING: Duration = Duration::from_secs(5);

/// How long one host is waited for, unless the address says so. One that hangs takes connections, and
/// never greets.
pub(crate) const CONNECT: Duration = Duration::from_secs(3);

/// How long an answer is waited for. A commit that waits for a standby takes as long as the
/// standby; past this the connection is dropped, never cancelled, and the store is asked what
/// became of it.
const ANSWER: Duration = Duration::from_secs(60);

/// How many times as long as for a server that is gone an answer is waited for by those whose
/// callers wait: a server that is there may have much to do.
const BUSY: u32 = 5;

/// A namespace is a word that needs no quoting anywhere.
const MAX_NAMESPACE: usize = 63;

/// Where a store is. Neither its `Debug` nor its `Display` shows a user or a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub(crate) config: Config,
    /// Where to listen, past a pooler.
    pub(crate) direct: Option<Config>,
    pub(crate) namespace: String,
    pub(crate) follow: Follow,
    pub(crate) statements: Statements,
    pub(crate) connections: usize,
    /// How long a server is waited for that is gone, and one that was not there yet.
    pub(crate) patience: Duration,
    pub(crate) opening: Duration,
    /// How long one is waited for that is there and does not answer.
    pub(crate) answer: Duration,
    pub(crate) roots: Roots,
    shown: PathBuf,
}

/// How a follower learns of other processes' events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follow {
    /// It looks.
    Poll,
    /// It is told, and looks now and then.
    Listen,
}

/// May statements be prepared once and used again?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statements {
    /// Statements are prepared once and reused.
    Prepared,
    /// No: a pooler may put the next one on another connection.
    Plain,
}

/// Who vouches for the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    /// Those whom the system trusts.
    System,
    /// Those in a file.
    File(PathBuf),
}

impl Address {
    /// The same store for those whose callers wait: a server that is gone is waited for so long, at
    /// most, whatever the address says.
    #[must_use]
    pub fn waited_for(mut self, longest: Duration) -> Self {
        self.patience = self.patience.min(longest);
        self.opening = self.opening.min(longest);
        self.answer = self.answer.min(longest * BUSY);
        for config in [Some(&mut self.config), self.direct.as_mut()].into_iter().flatten() {
            let connect = config.get_connect_timeout().copied().unwrap_or(longest);
            config.connect_timeout(connect.min(longest));
            // What is sent and not taken by anybody is lost as soon; without it, after minutes.
            let taken = config.get_tcp_user_timeout().copied().unwrap_or(longest);
            config.tcp_user_timeout(taken.min(longest));
        }
        self
    }

    /// Reads what names a store: the address of such a one, or none if it is a folder's name.
    /// What looks like an address and is none is refused: as a folder's name it would be
    /// shown and stored, with the password in it.
    pub fn of_store(text: &str) -> Result<Option<Self>> {
        let text = text.trim();
        if let Some((scheme, rest)) = text.split_once("://") {
            return match is_ours(scheme) {
                true => Self::parse(&format!("postgres://{rest}")).map(Some),
                false => Err(refused("the address of a team's store begins with postgres://")),
            };
        }
        let has_login =
            |part: &str| part.split_once(':').is_some_and(|(_, rest)| rest.contains('@'));
        let mistyped = text.split('/').any(has_login)
            || text.contains("password=")
            || text.split_once(':').is_some_and(|(scheme, _)| is_ours(scheme))
            || text.split_once("//").is_some_and(|(front, rest)| {
                let login = rest.split_once('@').map(|(login, _)| login);
                login.is_some_and(|login| is_ours(front) || login.contains(':'))
            });
        match mistyped {
            true => Err(refused("the address of a team's store begins with postgres://")),
            false => Ok(None),
        }
    }

    /// Reads an address: `postgres://user:password@host:port,host2:port/database?…`.
    ///
    /// Besides what PostgreSQL's own clients take, it may say `namespace`, `follow`
    /// (`poll` or `listen`), `direct` (a host and port to listen at), `prepare` (`off`
    /// behind a pooler in transaction mode), `connections` and `patience` (in seconds).
    pub fn parse(text: &str) -> Result<Self> {
        let (front, query) = text.split_once('?').unwrap_or((text, ""));
        let mut asked = Asked::default();
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| refused("an option has no value"))?;
            let value = percent_decode_str(value).decode_utf8();
            let value = value.map_err(|_| refused("an option is no UTF-8"))?;
            if !asked.set(name, &value)? {
                if !DRIVERS.contains(&name) {
                    return Err(unknown(name));
                }
                rest.push(pair);
            }
        }
        let plain = format!("{front}?{}", rest.join("&"));
        // What the parser says may repeat a piece of a password that holds a ? or an @.
        let mut config: Config = plain.parse().map_err(|_| {
            refused("after postgres:// come user:password@host:port/database and options, with special characters written as %40")
        })?;
        if config.get_hosts().is_empty() {
            // Certificates name hosts: a server that is known by its number is called by it.
            let numbers: Vec<String> =
                config.get_hostaddrs().iter().map(ToString::to_string).collect();
            let hosts = if numbers.is_empty() { vec!["localhost".to_owned()] } else { numbers };
            for host in hosts {
                config.host(host);
            }
        }
        if config.get_user().is_none() {
            return Err(refused("it names no user"));
        }
        if config.get_application_name().is_none() {
            config.application_name("stepwell");
        }
        if !query.contains("target_session_attrs=") {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        config.keepalives_idle(Duration::from_secs(15));
        config.tcp_user_timeout(Duration::from_secs(30));
        let tls = asked.tls;
        config.ssl_mode(tls.unwrap_or_else(|| tls_between(&config)));
        let direct = asked.direct.map(|(host, port)| {
            let mut fresh = Config::new();
            fresh.host(host).port(port);
            fresh.user(config.get_user().unwrap_or_default());
            if let Some(password) = config.get_password() {
                fresh.password(password);
            }
            if let Some(database) = config.get_dbname() {
                fresh.dbname(database);
            }
            fresh.ssl_mode(tls.unwrap_or_else(|| tls_between(&fresh)));
            fresh.application_name("stepwell").connect_timeout(CONNECT);
            fresh
        });
        let namespace = asked.namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
        let shown = shown(&config, &namespace);
        Ok(Self {
            config,
            direct,
            namespace,
            follow: asked.follow.unwrap_or(Follow::Poll),
            statements: asked.statements.unwrap_or(Statements::Prepared),
            connections: asked.connections.unwrap_or(CONNECTIONS),
            patience: asked.patience.unwrap_or(PATIENCE),
            opening: asked.patience.unwrap_or(OPENING),
            answer: ANSWER,
            roots: asked.roots.map_or(Roots::System, Roots::File),
            shown,
        })
    }

    /// The address without user and password, as errors name it.
    #[must_use]
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// The team's part of the store.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The same address with a password, if it has none.
    #[must_use]
    pub fn or_password(mut self, password: &str) -> Self {
        for config in std::iter::once(&mut self.config).chain(&mut self.direct) {
            if config.get_password().is_none() {
                config.password(password);
            }
        }
        self
    }

    /// The password that is sent to the server: to be kept out of what is written elsewhere.
    #[must_use]
    pub fn password(&self) -> Option<String> {
        let password = self.config.get_password()?;
        String::from_utf8(password.to_vec()).ok()
    }

    /// The same store, another part of it.
    pub fn within(mut self, namespace: &str) -> Result<Self> {
        self.namespace = checked_namespace(namespace)?;
        self.shown = shown(&self.config, &self.namespace);
        Ok(self)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.shown).finish()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown.display().fmt(f)
    }
}

/// What the address asks for that PostgreSQL's clients do not know.
#[derive(Default)]
struct Asked {
    namespace: Option<String>,
    follow: Option<Follow>,
    direct: Option<(String, u16)>,
    statements: Option<Statements>,
    connections: Option<usize>,
    patience: Option<Duration>,
    tls: Option<SslMode>,
    roots: Option<PathBuf>,
}

impl Asked {
    /// Takes an option in, if it is one of ours.
    fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "namespace" => self.namespace = Some(checked_namespace(value)?),
            "follow" => {
                self.follow = Some(match value {
                    "poll" => Follow::Poll,
                    "listen" => Follow::Listen,
                    _ => return Err(refused("follow is poll or listen")),
                });
            }
            "direct" => {
                let (host, port) = value.rsplit_once(':').unwrap_or((value, "5432"));
                let port = port.parse().map_err(|_| refused("direct is a host and a port"))?;
                self.direct = Some((host.to_owned(), port));
            }
            "prepare" => {
                self.statements = Some(match value {
                    "on" => Statements::Prepared,
                    "off" => Statements::Plain,
                    _ => return Err(refused("prepare is on or off")),
                });
            }
            "connections" => {
                let count = value.parse().ok().filter(|count| (1..=1000).contains(count));
                self.connections =
                    Some(count.ok_or_else(|| refused("connections is a number from 1 to 1000"))?);
            }
            "patience" => {
                let seconds =
                    value.parse().map_err(|_| refused("patience is a number of seconds"))?;
                self.patience = Some(Duration::from_secs(seconds));
            }
            "sslmode" => {
                self.tls = Some(match value {
                    "disable" => SslMode::Disable,
                    // What is encrypted but not checked can be read by whoever stands between.
                    "require" | "verify-ca" | "verify-full" => SslMode::Require,
                    _ => return Err(refused("sslmode is disable or verify-full")),
                });
            }
            "sslrootcert" => self.roots = Some(PathBuf::from(value)),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The options of the address that the driver reads.
const DRIVERS: [&str; 18] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "options",
    "password",
    "port",
    "sslnegotiation",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

/// The options that only a store's address has.
const OURS: [&str; 8] = [
    "connections",
    "direct",
    "follow",
    "namespace",
    "patience",
    "prepare",
    "sslmode",
    "sslrootcert",
];

/// An option that there is not. What looks like none may be a piece of a password with a ? or an &,
/// and is not repeated: only the option that was meant is named.
fn unknown(name: &str) -> Error {
    match stepwell::sessions::nearest(name, OURS.into_iter().chain(DRIVERS)) {
        Some(meant) => refused(&format!("{name} is no option of it; did you mean {meant}?")),
        None => refused("it has an option that is not known; docs/teams.md lists them"),
    }
}

/// Is this what such an address begins with?
fn is_ours(scheme: &str) -> bool {
    ["postgres", "postgresql"].iter().any(|ours| scheme.eq_ignore_ascii_case(ours))
}

/// What a connection needs unless the address says it: TLS as soon as one of the places
/// that it may go to is on another machine.
fn tls_between(config: &Config) -> SslMode {
    let numbers = config.get_hostaddrs();
    let here = match numbers {
        [] => config.get_hosts().iter().all(is_local),
        // The hosts' names are then for certificates only.
        numbers => numbers.iter().all(IpAddr::is_loopback),
    };
    if here { SslMode::Disable } else { SslMode::Require }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let number = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
            name == "localhost" || number.is_ok_and(|number| number.is_loopback())
        }
    }
}

pub(crate) fn checked_namespace(name: &str) -> Result<String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name.len() > MAX_NAMESPACE || !name.chars().all(fits) {
        return Err(refused("a namespace has 1 to 63 of a-z, 0-9, - and _"));
    }
    Ok(name.to_owned())
}

fn shown(config: &Config, namespace: &str) -> PathBuf {
    let ports = config.get_ports();
    let host = |(n, host): (usize, &Host)| {
        let name = match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
        if port == 5432 { name } else { format!("{name}:{port}") }
    };
    let hosts: Vec<String> = config.get_hosts().iter().enumerate().map(host).collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    let part = match namespace {
        DEFAULT_NAMESPACE => String::new(),
        other => format!("?namespace={other}"),
    };
    PathBuf::from(format!("postgres://{}/{database}{part}", hosts.join(",")))
}

/// An address that cannot be used. It is not repeated: it may hold a password.
fn refused(what: &str) -> Error {
    Error::Unsupported { path: PathBuf::from("postgres://…"), what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_user_nor_password_is_shown() {
        let text =
            "postgres://ann:s3cr%40t@db.example:5433,two:5433/runs?namespace=team-a&follow=listen";
        let address = Address::parse(text).unwrap();
        assert_eq!(
            address.to_string(),
            "postgres://db.example:5433,two:5433/runs?namespace=team-a"
        );
        let shown = format!("{address:?} {address}");
        assert!(!shown.contains("ann") && !shown.contains("s3cr"), "{shown}");
        assert_eq!(address.config.get_password(), Some(&b"s3cr@t"[..]));
        assert_eq!(address.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(address.follow, Follow::Listen);
    }

    #[test]
    fn an_address_that_cannot_be_read_is_not_repeated() {
        for text in [
            "postgres://ann:s3cret?x@db/runs",
            "postgres://ann:s3cret@db:port/runs",
            "postgres://ann:s3cret@db/runs?s3cret=1",
            "postgres://ann:s3cret@db/runs?namespace=s3cret/",
            "postgres://ann:s3cret@db/runs?follow=s3cret",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_mistyped_option_is_named_with_the_one_that_was_meant() {
        for (typed, meant) in [
            ("namespce=a", "namespace"),
            ("patiense=3", "patience"),
            ("sslrootcerts=/ca.pem", "sslrootcert"),
            ("connect_timout=3", "connect_timeout"),
        ] {
            let error = Address::parse(&format!("postgres://u@db/runs?{typed}")).unwrap_err();
            let name = typed.split('=').next().unwrap();
            let said = format!("{name} is no option of it; did you mean {meant}?");
            assert!(error.to_string().contains(&said), "{error}");
        }
        let known = "connect_timeout=3&application_name=x&options=-c%20a%3Db&keepalives=0";
        assert!(Address::parse(&format!("postgres://u@db/runs?{known}")).is_ok());
    }

    #[test]
    fn what_looks_like_an_address_is_never_a_folder() {
        for text in [
            "POSTGRES://ann:s3cret@db/runs",
            "PostgreSQL://ann:s3cret@db/runs",
            " postgres://ann:s3cret@db/runs\n",
        ] {
            let address = Address::of_store(text).unwrap().expect(text);
            assert_eq!(address.to_string(), "postgres://db/runs");
        }
        for text in [
            "postgres:/ann:s3cret@db/runs",
            "postgres:ann:s3cret@db/runs",
            "postgres//ann:s3cret@db/runs",
            "Postgresql//s3cret@db/runs",
            "pstgres//ann:s3cret@db/runs",
            "mysql://ann:s3cret@db/runs",
            "postgre://ann:s3cret@db/runs",
            "postgres:://ann:s3cret@db/runs",
            "https://db/s3cret",
            "ann:s3cret@127.0.0.1:5432/runs",
            "pg:ann:s3cret@db/runs",
            "postgrs:/ann:s3cret@db/runs",
            "host=db user=ann password=s3cret",
        ] {
            let error = Address::of_store(text).expect_err(text);
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
        for text in [".stepwell", "/srv//a@b/store", "postgres/store", "C:/store", "a:b", ""] {
            assert_eq!(Address::of_store(text).unwrap(), None, "{text}");
        }
    }

    #[test]
    fn what_is_said_of_our_own_is_understood() {
        let text = "postgresql://u@localhost/db?prepare=off&connections=3&patience=7&direct=h:6&sslmode=verify-full&sslrootcert=%2Fca.pem";
        let address = Address::parse(text).unwrap();
        assert_eq!(address.statements, Statements::Plain);
        assert_eq!((address.connections, address.patience), (3, Duration::from_secs(7)));
        // Whoever names a patience means it from the beginning.
        assert_eq!(address.opening, Duration::from_secs(7));
        assert_eq!(address.direct.unwrap().get_ports(), [6]);
        assert_eq!(address.roots, Roots::File("/ca.pem".into()));
        let local = Address::parse("postgres://u@localhost/db").unwrap();
        assert_eq!(local.config.get_ssl_mode(), SslMode::Disable);
        assert_eq!(local.namespace(), DEFAULT_NAMESPACE);
        assert_eq!((local.opening, local.patience), (OPENING, PATIENCE));
        let soon = Duration::from_secs(3);
        let local = local.waited_for(soon);
        assert_eq!((local.opening, local.patience), (soon, soon));
        assert_eq!(local.config.get_connect_timeout(), Some(&soon));
        assert!(Address::parse("postgres://localhost/db").is_err());
    }

    #[test]
    fn nothing_goes_to_another_machine_unencrypted_unless_it_is_asked_for() {
        let modes = |rest: &str| {
            let address = Address::parse(&format!("postgres://u:p@{rest}")).unwrap();
            let direct = address.direct.as_ref().map(Config::get_ssl_mode);
            (address.config.get_ssl_mode(), direct)
        };
        let (open, closed) = (SslMode::Disable, SslMode::Require);
        assert_eq!(modes("localhost/db"), (open, None));
        assert_eq!(modes("127.0.0.2,localhost/db"), (open, None));
        assert_eq!(modes("localhost,db1/db"), (closed, None));
        // A pooler here, its server elsewhere, and the other way round.
        assert_eq!(modes("127.0.0.1:6432/db?direct=db1:5432"), (open, Some(closed)));
        assert_eq!(modes("db1:6432/db?direct=localhost:5432"), (closed, Some(open)));
        assert_eq!(modes("localhost/db?direct=db1&sslmode=disable"), (open, Some(open)));
        assert_eq!(modes("localhost/db?direct=[::1]:5432&sslmode=require"), (closed, Some(closed)));
        // The number is where it goes, whatever the name is.
        assert_eq!(modes("localhost/db?hostaddr=10.0.0.5"), (closed, None));
        assert_eq!(modes("localhost,b/db?hostaddr=127.0.0.1,10.0.0.5"), (closed, None));
        assert_eq!(modes("db1/db?hostaddr=127.0.0.1"), (open, None));
        let numbered = Address::parse("postgres://u@/db?hostaddr=10.0.0.5").unwrap();
        assert_eq!(numbered.config.get_ssl_mode(), closed);
        assert_eq!(numbered.to_string(), "postgres://10.0.0.5/db");
    }
}
