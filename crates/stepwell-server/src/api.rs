//! The routes, in one table.
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

/// Every route below `/api/v1`, but for streams and logins.
pub(crate) fn routes() -> &'static [Route] {
    static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(table);
    &ROUTES
}

fn table() -> Vec<Route> {
    let (post, patch, delete) = (Method::POST, Method::PATCH, Method::DELETE);
    vec![
        Route::list("/sessions", "Lists sessions, newest first.", sessions::list),
        Route::get("/sessions/{id}", "Shows a session.", sessions::show),
        Route::get("/sessions/{id}/tree", "The sessions that grew out of it.", sessions::tree),
        Route::get("/sessions/{id}/lanes", "Its conversations.", sessions::lanes),
        Route::get("/sessions/{id}/cost", "What it spent, with its subagents.", sessions::cost),
        Route::get("/sessions/{id}/flow", "The plan of its flow.", sessions::flow),
        Route::get("/sessions/{id}/state", "How its work stands.", sessions::state),
        Route::get("/sessions/{id}/tasks", "What is planned.", sessions::tasks),
        Route::get("/sessions/{id}/checkpoints", "Its checkpoints.", sessions::checkpoints),
        Route::get(
            "/sessions/{id}/verify",
            "Checks that its log is as it was recorded.",
            sessions::verify,
        ),
        Route::change(
            post.clone(),
            "/sessions/{id}/verify",
            "Checks that its log is as it was recorded.",
            sessions::verify_now,
        ),
        Route::list("/sessions/{id}/events", "Its log.", contents::events),
        Route::get("/sessions/{id}/marks", "Points that people look for.", contents::marks),
        Route::get("/sessions/{id}/view", "What the model was shown at a point.", contents::view),
        Route::file(
            "/sessions/{id}/document",
            "The session as a page to read.",
            contents::document,
        ),
        Route::get("/sessions/{id}/files", "The versions of its files.", contents::files),
        Route::get(
            "/sessions/{id}/files/content",
            "What a file held at a point.",
            contents::content,
        ),
        Route::get(
            "/sessions/{id}/diff",
            "What it did to files between two points.",
            contents::diff,
        ),
        Route::get("/sessions/{id}/compare", "Two sessions side by side.", contents::compare),
        Route::file("/sessions/{id}/export", "The session in a format.", contents::export),
        Route::change(patch, "/sessions/{id}", "Changes label, tags, pin and goal.", changes::edit),
        Route::change(delete, "/sessions/{id}", "Moves it to the trash.", changes::trash),
        Route::change(
            post.clone(),
            "/sessions/{id}/restore",
            "Takes it out of the trash.",
            changes::restore,
        ),
        Route::change(post.clone(), "/sessions/{id}/say", "Says something to it.", changes::say),
        Route::change(
            post.clone(),
            "/sessions/{id}/stop",
            "Asks its runner to stop.",
            changes::stop,
        ),
        Route::change(
            post.clone(),
            "/sessions/{id}/checkpoint",
            "Names its present point.",
            changes::checkpoint,
        ),
        Route::change(
            post.clone(),
            "/sessions/{id}/fork",
            "Makes a session that shares its past.",
            changes::fork,
        ),
        Route::change(
            post.clone(),
            "/sessions/{id}/gates/{gate}",
            "Answers a question; the first answer counts.",
            changes::answer,
        ),
        Route::change(
            post.clone(),
            "/sessions/{id}/compact/undo",
            "Takes the last compaction back.",
            changes::undo_compaction,
        ),
        Route::start("/sessions", "Starts a run.", runs::start),
        Route::start("/sessions/{id}/resume", "Resumes it.", runs::resume),
        Route::change(
            post.clone(),
            "/sessions/{id}/compact",
            "Makes its conversation shorter.",
            runs::compact,
        ),
        Route::change(post.clone(), "/sessions/{id}/rewind", "Moves it back.", runs::rewind),
        Route::change(
            post.clone(),
            "/sessions/{id}/rewind/undo",
            "Takes the last rewind back.",
            runs::undo_rewind,
        ),
        Route::change(
            post,
            "/sessions/{id}/rewind/redo",
            "Takes the last undo back.",
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
        Route::get("/stats", "How sessions went, and what they cost.", overview::stats),
        Route::get("/models", "Recent models and favourites.", overview::models),
        Route::get("/agents", "The agents that runs can be started with.", overview::agents),
        Route::get("/flows", "The flows that can be started.", overview::flows),
        Route::get("/stores", "The stores that are served.", overview::stores),
        Route::get("/disk", "How much room the store takes.", overview::disk),
        Route::get("/doctor", "What is wrong with the store.", overview::doctor),
        Route::get("/server", "What this server allows its caller.", overview::server),
    ]
}
