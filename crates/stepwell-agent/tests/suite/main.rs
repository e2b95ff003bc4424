//! The agent, end to end.
