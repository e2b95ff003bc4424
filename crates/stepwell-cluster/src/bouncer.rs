//! A pooler in transaction mode before a server.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::keeper::Keeper;
use crate::{Server, as_server, done, free_port, is_root, scratch};

/// pgbouncer, in transaction mode: each transaction may come to another connection.
#[derive(Debug)]
pub struct Bouncer {
    port: u16,
    _keeper: Keeper,
}

impl Bouncer {
    /// Starts one before a server. Few connections lie behind it, so that they are shared.
    #[must_use]
    pub fn before(server: &Server) -> Self {
        // Whom the server trusts, the pooler lets through as the owner.
        Self::start(server, "user=stepwell", "auth_type = any", "")
    }

    /// Starts one that lets a single role in, by its password.
    #[must_use]
    pub fn asking(server: &Server, role: &str, password: &str) -> Self {
        Self::start(server, "", "auth_type = md5", &format!("\"{role}\" \"{password}\"\n"))
    }

    fn start(server: &Server, behind: &str, asked: &str, users: &str) -> Self {
        let folder = scratch();
        let port = free_port();
        let config = folder.join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = {behind} host=127.0.0.1 port={}\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir = \n{asked}\n\
             auth_file = {folder}/users\npool_mode = transaction\n\
             default_pool_size = 10\nmax_client_conn = 1000\nlogfile = {folder}/log\n\
             pidfile = {folder}/pid\nserver_reset_query = \n",
            server.port(),
            folder = folder.display()
        );
        for (file, text) in [(&config, text.as_str()), (&folder.join("users"), users)] {
            std::fs::write(file, text).unwrap();
            if is_root() {
                done(Command::new("chown").arg("postgres").arg(file));
            }
        }
        let keeper = Keeper::new(&folder, &folder.join("pid"));
        // Debian keeps it where only root's path leads.
        let debians = Path::new("/usr/sbin/pgbouncer");
        let program = if debians.exists() { debians } else { Path::new("pgbouncer") };
        let mut start = as_server(program, &folder);
        start.arg("-d").arg("-q").arg(&config).stdin(Stdio::null());
        done(&mut start);
        Self { port, _keeper: keeper }
    }

    /// Where it listens, on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address for a store.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://stepwell@127.0.0.1:{}/postgres?prepare=off", self.port)
    }
}
