//! Servers that the tests of this process share, and namespaces of their own for each.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use stepwell_cluster::{Bouncer, Disk, Server};
use stepwell_postgres::Address;

/// The server that most tests share.
pub(crate) fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(Disk::Lazy))
}

/// A pooler in transaction mode before it.
pub(crate) fn bouncer() -> &'static Bouncer {
    static BOUNCER: OnceLock<Bouncer> = OnceLock::new();
    BOUNCER.get_or_init(|| Bouncer::before(server()))
}

/// An address of the shared server, in a namespace that nobody else has.
pub(crate) fn fresh(url: &str) -> Address {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    Address::parse(url).unwrap().within(&format!("test-{n}")).unwrap()
}
