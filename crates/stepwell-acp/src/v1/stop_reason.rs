//! How a turn ended, as the protocol words it. Pure.

use serde_json::{Value, json};

use crate::rpc::{Result, RpcError};
use crate::turn::TurnEnd;

/// The answer to a prompt whose turn ended.
pub(super) fn stop_reason(end: TurnEnd, withdrawn: bool) -> Result<Value> {
    let reason = match end {
        TurnEnd::Cancelled if withdrawn => return Err(RpcError::cancelled()),
        TurnEnd::Done => "end_turn",
        TurnEnd::Limit => "max_turn_requests",
        TurnEnd::Full => "max_tokens",
        TurnEnd::Refused => "refusal",
        TurnEnd::Cancelled => "cancelled",
        TurnEnd::Failed { message, credentials: true } => {
            return Err(RpcError::new(RpcError::AUTH_REQUIRED, message));
        }
        TurnEnd::Failed { message, credentials: false } => return Err(RpcError::internal(message)),
    };
    Ok(json!({"stopReason": reason}))
}
