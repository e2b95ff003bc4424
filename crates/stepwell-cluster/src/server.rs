//! A PostgreSQL server.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cleanup::Cleanup;
use crate::{as_server, free_port, programs, run, scratch};

/// The superuser, who needs no password.
const OWNER: &str = "stepwell";

/// Whether commits are flushed to disk. Tests that kill servers, not machines, do not need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// Each commit is flushed.
    Synced,
    /// The operating system decides.
    Lazy,
}

/// Whether a primary waits for its standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// It waits until the standby has flushed each commit.
    Waited,
    /// It does not wait.
    Not,
}

/// A server in a scratch folder, on loopback.
#[derive(Debug)]
pub struct Server {
    folder: PathBuf,
    port: u16,
    _cleanup: Cleanup,
}

impl Server {
    /// Starts an empty server.
    #[must_use]
    pub fn start(disk: Disk) -> Self {
        let folder = scratch();
        let data = folder.join("data");
        run(as_server(&programs().join("initdb"), &folder).args([
            "--pgdata",
            data.to_str().unwrap(),
            "--username",
            OWNER,
            "--auth",
            "trust",
            "--encoding",
            "UTF8",
            "--locale",
            "C",
            "--no-sync",
        ]));
        let port = free_port();
        let fsync = if disk == Disk::Synced { "on" } else { "off" };
        let settings = format!(
            "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{}'\n\
             fsync = {fsync}\nmax_connections = 200\nshared_buffers = 64MB\n\
             wal_level = replica\nmax_wal_senders = 8\nwal_keep_size = 256MB\nhot_standby = on\n\
             logging_collector = off\nlog_min_messages = warning\n\
             max_prepared_transactions = 0\n",
            folder.display()
        );
        add(&data.join("postgresql.conf"), &settings);
        add(&data.join("pg_hba.conf"), "host replication all 127.0.0.1/32 trust\n");
        let cleanup = Cleanup::new(&folder, &data.join("postmaster.pid"));
        let server = Self { folder, port, _cleanup: cleanup };
        server.run_on();
        server
    }

    /// Starts a standby of this server.
    #[must_use]
    pub fn standby(&self, name: &str) -> Self {
        self.standby_at(name, free_port())
    }

    /// Starts a standby of this server on this port.
    #[must_use]
    pub fn standby_at(&self, name: &str, port: u16) -> Self {
        let folder = scratch();
        let data = folder.join("data");
        run(as_server(&programs().join("pg_basebackup"), &folder).args([
            "--pgdata",
            data.to_str().unwrap(),
            "--dbname",
            &format!("host=127.0.0.1 port={} user={OWNER} application_name={name}", self.port),
            "--write-recovery-conf",
            "--checkpoint=fast",
            "--no-sync",
        ]));
        let settings = format!(
            "port = {port}\nunix_socket_directories = '{}'\nsynchronous_standby_names = ''\n",
            folder.display()
        );
        add(&data.join("postgresql.conf"), &settings);
        // The standby must not inherit this setting of ALTER SYSTEM.
        let auto = data.join("postgresql.auto.conf");
        let text = std::fs::read_to_string(&auto).unwrap();
        let kept: Vec<&str> =
            text.lines().filter(|line| !line.contains("synchronous_standby_names")).collect();
        std::fs::write(&auto, kept.join("\n") + "\n").unwrap();
        let cleanup = Cleanup::new(&folder, &data.join("postmaster.pid"));
        let server = Self { folder, port, _cleanup: cleanup };
        server.run_on();
        server
    }

    /// Starts the server again, after it was stopped or killed.
    pub fn run_on(&self) {
        let log = self.folder.join("log");
        let mut start = self.control("start");
        start.arg("--log").arg(&log).args(["--wait", "--timeout", "60", "--silent"]);
        let output = start.output().unwrap();
        let log = || std::fs::read_to_string(&log).unwrap_or_default();
        assert!(output.status.success(), "the server did not start: {}", log());
    }

    fn control(&self, what: &str) -> Command {
        let mut command = as_server(&programs().join("pg_ctl"), &self.folder);
        command.arg(what).arg("--pgdata").arg(self.folder.join("data"));
        command
    }

    /// Its port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address as a store, for the owner.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://{OWNER}@127.0.0.1:{}/postgres", self.port)
    }

    /// The address of a store on this server and another one with the same data.
    #[must_use]
    pub fn url_with(&self, other: &Self) -> String {
        format!("postgres://{OWNER}@127.0.0.1:{},127.0.0.1:{}/postgres", self.port, other.port)
    }

    /// Runs SQL as the owner. Returns the plain output.
    #[must_use]
    pub fn sql(&self, sql: &str) -> String {
        // If two tests change the rights of a table at once, one of them fails.
        let is_passing = |error: &str| error.contains("tuple concurrently updated");
        let mut tries = (0..20).map(|_| self.sql_as(OWNER, sql));
        let ran = tries.find(|ran| !ran.as_ref().is_err_and(|error| is_passing(error)));
        let ran = ran.unwrap_or_else(|| panic!("{sql}: concurrently updated again and again"));
        ran.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs SQL as a role. The error is the output of psql.
    pub fn sql_as(&self, role: &str, sql: &str) -> Result<String, String> {
        let mut command = Command::new(programs().join("psql"));
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"]);
        command.args(["-p", &self.port.to_string(), "-U", role, "-d", "postgres", "-c", sql]);
        let output = command.output().unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    }

    /// Creates a role that needs a password. All others stay trusted.
    pub fn demand_password(&self, role: &str, password: &str) {
        let _ = self.sql(&format!("CREATE ROLE {role} LOGIN PASSWORD '{password}'"));
        let rules = self.folder.join("data/pg_hba.conf");
        let text = std::fs::read_to_string(&rules).unwrap();
        // The first rule that matches is used.
        let text = format!("host all {role} 127.0.0.1/32 scram-sha-256\n{text}");
        std::fs::write(&rules, text).unwrap();
        run(self.control("reload").arg("--silent"));
        let sql = "SELECT count(*) FROM pg_hba_file_rules WHERE auth_method = 'scram-sha-256'";
        self.until(sql, "1");
    }

    /// Enables TLS with a self-signed certificate for one name (`IP:127.0.0.1`,
    /// `DNS:db.example`). Returns the certificate's file.
    #[must_use]
    pub fn encrypt(&self, name: &str) -> PathBuf {
        let certificate = self.folder.join("server.crt");
        let key = self.folder.join("server.key");
        let mut make = as_server("openssl".as_ref(), &self.folder);
        make.args(["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=stepwell"]);
        make.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
        make.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        make.args(["-addext", &format!("subjectAltName={name}")]);
        make.arg("-out").arg(&certificate).arg("-keyout").arg(&key);
        run(&mut make);
        let settings = format!(
            "ssl = on\nssl_cert_file = '{}'\nssl_key_file = '{}'\n",
            certificate.display(),
            key.display()
        );
        add(&self.folder.join("data/postgresql.conf"), &settings);
        run(self.control("reload").arg("--silent"));
        self.until("SHOW ssl", "on");
        // Only the server can read its folder.
        let copy = tempfile::NamedTempFile::new().unwrap().into_temp_path().keep().unwrap();
        std::fs::copy(&certificate, &copy).unwrap();
        copy
    }

    /// Sets whether commits wait for the standby of this name.
    pub fn wait_for(&self, standby: &str, sync: Sync) {
        let names = if sync == Sync::Waited { standby } else { "" };
        let _ = self.sql(&format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"));
        let _ = self.sql("SELECT pg_reload_conf()");
        let state = if sync == Sync::Waited { "sync" } else { "async" };
        let sql = format!(
            "SELECT count(*) FROM pg_stat_replication WHERE application_name = '{standby}' \
             AND state = 'streaming' AND sync_state = '{state}'"
        );
        self.until(&sql, "1");
    }

    /// Waits until a query returns this answer.
    fn until(&self, sql: &str, answer: &str) {
        for _ in 0..600 {
            if self.sql(sql) == answer {
                return;
            }
            let _ = Command::new("sleep").arg("0.05").status();
        }
        panic!("{sql} never returned {answer}, but {}", self.sql(sql));
    }

    /// Waits until a standby has flushed everything.
    pub fn caught_up(&self, standby: &str) {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_replication WHERE application_name = '{standby}' \
             AND flush_lsn >= '{}'",
            self.sql("SELECT pg_current_wal_lsn()")
        );
        self.until(&sql, "1");
    }

    /// Stops this standby from receiving the primary's log.
    pub fn stall(&self) {
        // No server listens there.
        let data = self.folder.join("data");
        add(&data.join("postgresql.auto.conf"), "primary_conninfo = 'host=127.0.0.1 port=1'\n");
        run(self.control("reload").arg("--silent"));
        self.until("SELECT count(*) FROM pg_stat_wal_receiver", "0");
    }

    fn pid(&self) -> String {
        let file = self.folder.join("data/postmaster.pid");
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines().next().unwrap_or_default().to_owned()
    }

    /// Kills the server and all its processes at once, like the loss of its machine.
    pub fn kill(&self) {
        let pid = self.pid();
        // While stopped, it cannot replace the processes that are killed.
        run(Command::new("kill").args(["-STOP", &pid]));
        let children = Command::new("pgrep").args(["-P", &pid]).output().unwrap();
        let children = String::from_utf8_lossy(&children.stdout).into_owned();
        let mut kill = Command::new("kill");
        kill.arg("-KILL").arg(&pid).args(children.lines());
        let _ = kill.output().unwrap();
        while Command::new("kill").args(["-0", &pid]).output().unwrap().status.success() {
            let _ = Command::new("sleep").arg("0.01").status();
        }
        let _ = std::fs::remove_file(self.folder.join("data/postmaster.pid"));
    }

    /// Suspends the server and all its processes: it keeps its connections, accepts new ones, and
    /// does not answer.
    pub fn suspend(&self) {
        self.signal("-STOP");
    }

    /// Continues it after `suspend`.
    pub fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.pid();
        let children = Command::new("pgrep").args(["-P", &pid]).output().unwrap();
        let children = String::from_utf8_lossy(&children.stdout).into_owned();
        // The parent first: it starts no other while its children are stopped.
        run(Command::new("kill").args([signal, &pid]));
        let _ = Command::new("kill").arg(signal).args(children.lines()).output().unwrap();
    }

    /// Promotes this standby to primary.
    pub fn promote(&self) {
        run(self.control("promote").args(["--wait", "--timeout", "60", "--silent"]));
    }
}

/// Appends to a file. Its owner stays the server's user.
fn add(path: &Path, text: &str) {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}
