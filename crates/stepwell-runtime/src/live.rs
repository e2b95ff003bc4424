//! A run's words while they are spoken: pieces of answers, for whoever of the same user listens.
//!
//! The log has an answer when it is whole. Until then its pieces go over a private socket: a file
//! that only the user may open, in a folder that only they may enter. The pieces are as the model
//! gives them, not redacted, and no log ever has them. A run that nobody listens to sends nothing,
//! and it waits for no listener: one that does not keep up is dropped, and may come back.
//!
//! The runner publishes, a front end [listens](listen()), and [`InOrder`] puts what it
//! hears in order with what it reads in the log.

mod answers;
mod in_order;
mod listen;
mod publish;
mod socket;

pub use in_order::InOrder;
pub use listen::{Listening, listen};
pub use stepwell_wire::{LivePiece, LivePieceKind};

pub(crate) use publish::Publisher;
