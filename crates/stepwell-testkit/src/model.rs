//! A scripted model that a test watches.

use std::fmt;

use futures_util::future::BoxFuture;
use stepwell::View;
use stepwell_agent::provider::script::Scripted;
use stepwell_agent::provider::{Answer, CallError, Delta, Provider, Request};

/// A moment of a call.
#[derive(Clone, Copy, Debug)]
pub enum Moment<'a> {
    /// Before the model answers.
    Asked(Request<'a>),
    /// After the model answered.
    Answered(&'a Result<Answer, CallError>),
}

/// A scripted model that checks each conversation and reports each call.
pub struct Watched {
    model: Scripted,
    watch: Box<dyn Fn(Moment<'_>) + Send + Sync>,
}

impl Watched {
    /// Reports the calls of a model.
    pub fn new(model: Scripted, watch: impl Fn(Moment<'_>) + Send + Sync + 'static) -> Self {
        Self { model, watch: Box::new(watch) }
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("model", &self.model).finish_non_exhaustive()
    }
}

impl Provider for Watched {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn answer<'a>(
        &'a self,
        request: Request<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        View::check(request.messages).expect("the conversation is valid");
        (self.watch)(Moment::Asked(request));
        Box::pin(async move {
            let answer = self.model.answer(request, on_delta).await;
            (self.watch)(Moment::Answered(&answer));
            answer
        })
    }
}
