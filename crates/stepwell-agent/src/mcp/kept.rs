//! MCP servers that a front end shares between runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use super::{Server, Servers, Starting};
use crate::tool::ToolEnv;

/// Servers that start when a run first needs them, and stay until the front end closes them. A
/// server that died starts again with the next run.
#[derive(Debug)]
pub struct KeptServers {
    servers: Vec<Server>,
    /// The runtime of the connections; a run's own runtime ends with the run.
    tokio: Handle,
    /// The connected servers, by name.
    open: Mutex<BTreeMap<String, Arc<Servers>>>,
}

impl KeptServers {
    /// `tokio` must outlive the runs.
    #[must_use]
    pub fn new(servers: Vec<Server>, tokio: Handle) -> Self {
        Self { servers, tokio, open: Mutex::default() }
    }

    /// The configured servers.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Their tools for one run. Closing the result ends no server.
    pub async fn connect(&self, place: &ToolEnv, awaited: &Starting) -> Servers {
        let mut open = self.open.lock().await;
        open.retain(|_, connected| connected.is_alive());
        let missing = self.servers.iter().filter(|it| !open.contains_key(it.name.as_str()));
        let starting = missing.map(|server| {
            let (server, place, awaited) = (server.clone(), place.clone(), awaited.clone());
            self.tokio.spawn(async move {
                let one = std::slice::from_ref(&server);
                let connected = Servers::connect(one, &place, &awaited).await;
                (server.name.to_string(), connected)
            })
        });
        let mut all = Servers::default();
        // A panic in a connection's task counts as no answer.
        for (name, connected) in join_all(starting).await.into_iter().flatten() {
            if connected.absent.is_empty() {
                open.insert(name, Arc::new(connected));
            } else {
                all.absent.extend(connected.absent);
            }
        }
        for connected in open.values() {
            all.tools.extend(connected.tools.iter().cloned());
            all.notices.extend(connected.notices.iter().cloned());
        }
        all
    }

    /// Ends all servers.
    pub async fn close(&self) {
        let open = std::mem::take(&mut *self.open.lock().await);
        join_all(open.values().map(|connected| connected.close())).await;
    }
}
