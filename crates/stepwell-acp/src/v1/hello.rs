//! What we answer to `initialize`: who we are, and what we can do. Pure.

use serde_json::{Value, json};

use crate::setup::Setup;

use super::extension::METHODS;

/// The version of the protocol that is spoken here.
const VERSION: u64 = 1;

/// The answer.
pub(super) fn answer(setup: &Setup) -> Value {
    let mut session = json!({
        "list": {}, "delete": {}, "resume": {}, "close": {}, "additionalDirectories": {},
    });
    if setup.unstable {
        for name in ["fork", "archive", "title"] {
            session[name] = json!({});
        }
    }
    json!({
        "protocolVersion": VERSION,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": false, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": true, "sse": false},
            "sessionCapabilities": session,
            "_meta": {"stepwell": {"methods": METHODS}},
        },
        "authMethods": [],
        "agentInfo": {"name": "stepwell", "title": "Stepwell", "version": setup.version},
    })
}
