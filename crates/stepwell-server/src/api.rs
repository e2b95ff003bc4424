//! The table of routes.
#![expect(
    clippy::needless_pass_by_value,
    reason = "handlers are given what they take, so that the table has one form"
)]

mod changes;
mod contents;
mod import;
mod overview;
mod runs;
mod sessions;

use std::sync::LazyLock;

use axum::http::Method;

use crate::route::Route;

/// Every route below `/api/v1`, except streams and logins.
pub(crate) fn routes() -> &'static [Route] {
    static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(table);
    &ROUTES
}

fn table() -> Vec<Route> {
    let (post, patch, delete) = (Method::POST, Method::PATCH, Method::DELETE);
    vec![
        Route::list("/sessions", "Lists sessions, newest first.", sessions::list),
        Route::get("/sessions/{id}", "Shows a session.", sessions::show),
        Route::get(
            "/sessions/{id}/tree",
            "Lists its subagents' sessions and forks.",
            sessions::tree,
        ),
        Route::get("/sessions/{id}/lanes", "Its lanes.", sessions::lanes),
        Route::get("/sessions/{id}/cost", "What it spent, with its subagents.", sessions::cost),
        Route::get("/sessions/{id}/flow", "The plan of its flow.", sessions::flow),
        Route::get("/sessions/{id}/state", "The state of its work.", sessions::state),
        Route::get("/sessions/{id}/tasks", "Its planned tasks.", sessions::tasks),
        Route::get("/sessions/{id}/checkpoints", "Its checkpoints.", sessions::checkpoints),
        Route::get("/sessions/{id}/verify", "Verifies its log.", sessions::verify),
        Route::change(
            post.clone(),
            "/sessions/{id}/verify",
            "Verifies its log.",
            sessions::verify_now,
        ),
        Route::list("/sessions/{id}/events", "Its log.", contents::events),
        Route::get("/sessions/{id}/marks", "Notable points.", contents::marks),
        Route::get("/sessions/{id}/view", "What the model was sent at a point.", contents::view),
        Route::file(
            "/sessions/{id}/document",
            "The session as a readable page.",
            contents::document,
        ),
        Route::get("/sessions/{id}/files", "The versions of its files.", contents::files),
        Route::get("/sessions/{id}/files/content", "A file at a point.", contents::content),
        Route::get("/sessions/{id}/diff", "Its file changes between two points.", contents::diff),
        Route::get("/sessions/{id}/compare", "Compares two sessions.", contents::compare),
        Route::file("/sessions/{id}/export", "The session in a format.", contents::export),
        Route::change(patch, "/sessions/{id}", "Changes label, tags, pin and goal.", changes::edit),
        Route::change(
            delete,
            "/sessions/{id}",
            "Deletes it: moves it to the trash.",
            changes::trash,
        ),
        Route::change(
            post.clone(),
            "/sessions/{id}/restore",
            "Restores it from the trash.",
            changes::restore,
        ),
        Route::change(post.clone(), "/sessions/{id}/say", "Sends it a message.", changes::say),
        Route::change(
            post.clone(),
            "/sessions/{id}/stop",
            "Asks its runner to stop.",
            changes::stop,
        ),
        Route::change(
            post.clone(),
            "/sessions/{id}/checkpoint",
            "Names its current point.",
            changes::checkpoint,
        ),
        Route::change(post.clone(), "/sessions/{id}/fork", "Forks it.", changes::fork),
        Route::change(
            post.clone(),
            "/sessions/{id}/gates/{gate}",
            "Answers a question; the first answer counts.",
            changes::answer,
        ),
        Route::change(
            post.clone(),
            "/sessions/{id}/compact/undo",
            "Undoes the last compaction.",
            changes::undo_compaction,
        ),
        Route::start("/sessions", "Starts a run.", runs::start),
        Route::start("/sessions/{id}/resume", "Resumes it.", runs::resume),
        Route::change(
            post.clone(),
            "/sessions/{id}/compact",
            "Compacts its conversation.",
            runs::compact,
        ),
        Route::change(post.clone(), "/sessions/{id}/rewind", "Rewinds it.", runs::rewind),
        Route::change(
            post.clone(),
            "/sessions/{id}/rewind/undo",
            "Undoes the last rewind.",
            runs::undo_rewind,
        ),
        Route::change(
            post,
            "/sessions/{id}/rewind/redo",
            "Redoes the last undone rewind.",
            runs::redo_rewind,
        ),
        Route::start("/flows", "Starts a flow.", runs::start_flow),
        Route::change(
            Method::POST,
            "/import",
            "Imports the sessions of the agents of this machine.",
            import::import,
        ),
        Route::get("/gates", "Every question that waits.", overview::gates),
        Route::get("/search", "Searches sessions.", overview::search),
        Route::get("/stats", "Outcomes and costs of sessions.", overview::stats),
        Route::get("/models", "Recent models and favourites.", overview::models),
        Route::get("/agents", "The agents that runs can be started with.", overview::agents),
        Route::get("/flows", "The flows that can be started.", overview::flows),
        Route::get("/stores", "The stores that are served.", overview::stores),
        Route::get("/disk", "The size of the store.", overview::disk),
        Route::get("/doctor", "Problems of the store.", overview::doctor),
        Route::get("/server", "What this server allows its caller.", overview::server),
    ]
}
