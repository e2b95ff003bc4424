//! What front ends show of sessions, as the types that programs read.

mod details;
mod files;
mod gates;
mod view;
mod work;

pub use details::{Depth, Details, details, item};
pub use files::{content, patches, side, versions};
pub use gates::{open_gates, sessions_with_gates};
pub use view::{Viewed, model_view, tokens};
pub use work::work_state;
