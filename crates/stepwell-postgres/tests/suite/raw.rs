//! A connection beside the store's, for what a store never does.

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::servers::server;

/// A connection to a database of the shared server.
pub(crate) struct Raw {
    runtime: Runtime,
    client: Client,
}

impl Raw {
    pub(crate) fn to(database: &str) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let url = url(database);
        let (client, connection) = runtime.block_on(tokio_postgres::connect(&url, NoTls)).unwrap();
        drop(runtime.spawn(connection));
        Self { runtime, client }
    }

    /// The columns of each row that the last of some statements answers with, as texts.
    pub(crate) fn ask(&self, sql: &str) -> Vec<Vec<String>> {
        let messages = self.runtime.block_on(self.client.simple_query(sql)).unwrap();
        let row = |message| match message {
            SimpleQueryMessage::Row(row) => {
                let column = |n| row.get(n).unwrap_or_default().to_owned();
                Some((0..row.len()).map(column).collect())
            }
            _ => None,
        };
        messages.into_iter().filter_map(row).collect()
    }

    /// Runs statements.
    pub(crate) fn run(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(sql)).unwrap();
    }
}

/// The address of a database of the shared server.
pub(crate) fn url(database: &str) -> String {
    let url = server().url();
    format!("{}/{database}", url.strip_suffix("/postgres").unwrap())
}

/// Makes an empty database on the shared server.
pub(crate) fn make_database(name: &str) {
    Raw::to("postgres").run(&format!("CREATE DATABASE {name}"));
}
