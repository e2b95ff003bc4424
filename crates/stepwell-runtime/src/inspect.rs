//! What front ends show of sessions, as the types that programs read.

mod details;
mod files;
mod gate_watch;
mod gates;
mod guided;
mod list;
mod meant_gate;
mod messages;
mod view;
mod work;

pub use details::{Depth, Details, details, item, items};
pub use files::{content, not_changed, patches, side, versions};
pub use gate_watch::{GateNews, GateWatch, WatchedStore};
pub use gates::{open_gates, sessions_with_gates};
pub use list::{ListWanted, ListedSession, SessionList};
pub use meant_gate::{MeantGate, meant_gate};
pub use messages::last_messages;
pub use view::{Viewed, model_view, tokens};
pub use work::work_state;
