//! The server, as programs and browsers reach it.
