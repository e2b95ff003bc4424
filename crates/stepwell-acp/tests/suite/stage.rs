//! An environment whose model streams over HTTP: it answers as it is told, and pauses where it is told.

use serde_json::json;
use stepwell_strict::{Ending, Rules, Say, Strict};

use crate::client::{Client, TestEnv};

pub(crate) struct Stage {
    pub(crate) env: TestEnv,
    pub(crate) strict: Strict,
    _tokio: tokio::runtime::Runtime,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let mut tokio = tokio::runtime::Builder::new_multi_thread();
        let tokio = tokio.worker_threads(1).enable_all().build().unwrap();
        let strict = tokio.block_on(Strict::start(Rules::default())).unwrap();
        let env = TestEnv::new("[]").with_provider(&strict.base_url(), strict.key());
        Self { env, strict, _tokio: tokio }
    }

    /// Has the model pause in the middle of its next answer.
    pub(crate) fn pauses(&self, text: &str) {
        self.strict.push(Say::text(text).ending(Ending::PausedAfter(4)));
    }

    /// Waits until the model was asked so often.
    pub(crate) fn asked(&self, times: usize) {
        while self.strict.asked().len() < times {
            std::thread::yield_now();
        }
    }

    /// What the model was asked, all of it.
    pub(crate) fn heard(&self) -> String {
        format!("{:?}", self.strict.asked())
    }

    /// A client whose first turn waits in the middle of an answer.
    pub(crate) fn halfway(&self, answer: &str) -> (Client, String, i64) {
        self.pauses(answer);
        let mut client = self.env.greeted(&json!({}));
        let session = client.new_session(&self.env);
        let prompt = client.prompt(&session, "tell me");
        self.asked(1);
        (client, session, prompt)
    }
}
