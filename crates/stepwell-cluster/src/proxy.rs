//! A proxy between a store and its server, which a test can watch, stop and cut.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};

/// The proxy.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    held: Mutex<bool>,
    freed: Condvar,
    /// How often the server was ready for the next query.
    answers: AtomicU64,
    connections: AtomicU64,
    /// Cut each connection at the server's next answer, once.
    cut: AtomicBool,
}

impl Proxy {
    /// A proxy to a server on loopback.
    #[must_use]
    pub fn to(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let Ok(there) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else { continue };
                join(client, there, &shared);
            }
        });
        Self { port, state }
    }

    /// The address of the store behind it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://stepwell@127.0.0.1:{}/postgres", self.port)
    }

    /// Holds all data back from now on, or lets it through.
    pub fn hold(&self, held: bool) {
        *self.state.held.lock() = held;
        self.state.freed.notify_all();
    }

    /// Its port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The number of connections so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// The number of answered queries, each after a round trip.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.state.answers.load(Ordering::SeqCst)
    }

    /// Withholds the server's next answer and cuts the connection.
    pub fn cut_at_next_answer(&self) {
        self.state.cut.store(true, Ordering::SeqCst);
    }
}

fn join(client: TcpStream, server: TcpStream, state: &Arc<State>) {
    let (mut up, mut down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (mut to_server, mut to_client) = (server, client);
    let shared = Arc::clone(state);
    std::thread::spawn(move || {
        let mut bytes = [0; 16 << 10];
        while let Ok(n @ 1..) = up.read(&mut bytes) {
            shared.pass();
            if to_server.write_all(&bytes[..n]).is_err() {
                break;
            }
        }
        let _ = to_server.shutdown(Shutdown::Both);
    });
    let shared = Arc::clone(state);
    std::thread::spawn(move || {
        while let Some(frame) = frame(&mut down) {
            shared.pass();
            // Only the answer to a statement counts, not the greeting.
            if frame[0] == b'C' && shared.cut.swap(false, Ordering::SeqCst) {
                break;
            }
            if frame[0] == b'Z' {
                shared.answers.fetch_add(1, Ordering::SeqCst);
            }
            if to_client.write_all(&frame).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
        let _ = down.shutdown(Shutdown::Both);
    });
}

impl State {
    fn pass(&self) {
        self.freed.wait_while(&mut self.held.lock(), |held| *held);
    }
}

/// The server's next message: type, length and body.
fn frame(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = [0; 5];
    from.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let mut frame = head.to_vec();
    frame.resize(1 + length, 0);
    from.read_exact(&mut frame[5..]).ok()?;
    Some(frame)
}
