//! pgbouncer in transaction mode in front of a server.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::cleanup::Cleanup;
use crate::{Server, as_server, free_port, is_root, run, scratch};

/// pgbouncer in transaction mode: each transaction may use another connection.
#[derive(Debug)]
pub struct Bouncer {
    port: u16,
    _cleanup: Cleanup,
}

impl Bouncer {
    /// Starts one in front of a server. It has few server connections, so that they are shared.
    #[must_use]
    pub fn before(server: &Server) -> Self {
        // The server trusts local clients, so the pooler connects everyone as the owner.
        Self::start(server, "user=stepwell", "auth_type = any", "")
    }

    /// Starts one that accepts only this role, with its password.
    #[must_use]
    pub fn asking(server: &Server, role: &str, password: &str) -> Self {
        Self::start(server, "", "auth_type = md5", &format!("\"{role}\" \"{password}\"\n"))
    }

    fn start(server: &Server, user: &str, auth: &str, users: &str) -> Self {
        let folder = scratch();
        let port = free_port();
        let config = folder.join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = {user} host=127.0.0.1 port={}\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir = \n{auth}\n\
             auth_file = {folder}/users\npool_mode = transaction\n\
             default_pool_size = 10\nmax_client_conn = 1000\nlogfile = {folder}/log\n\
             pidfile = {folder}/pid\nserver_reset_query = \n",
            server.port(),
            folder = folder.display()
        );
        for (file, text) in [(&config, text.as_str()), (&folder.join("users"), users)] {
            std::fs::write(file, text).unwrap();
            if is_root() {
                run(Command::new("chown").arg("postgres").arg(file));
            }
        }
        let cleanup = Cleanup::new(&folder, &folder.join("pid"));
        // Debian installs it in a folder that only root has in its PATH.
        let debian = Path::new("/usr/sbin/pgbouncer");
        let program = if debian.exists() { debian } else { Path::new("pgbouncer") };
        let mut start = as_server(program, &folder);
        start.arg("-d").arg("-q").arg(&config).stdin(Stdio::null());
        run(&mut start);
        Self { port, _cleanup: cleanup }
    }

    /// Its port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address as a store.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://stepwell@127.0.0.1:{}/postgres?prepare=off", self.port)
    }
}
