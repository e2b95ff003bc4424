//! Failures between a provider and the run: classified, retried or not, and without secrets in
//! their texts.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use stepwell::Message;
use stepwell_agent::provider::remote::{Endpoint, Key, Protocol, Remote};
use stepwell_agent::provider::retry::{Patience, Retrying, Waiting};
use stepwell_agent::provider::{Answer, CallError, Delta, Fault, Provider, Request};
use stepwell_strict::{Ending, Reply, Rules, Say, Strict, Tokens};

use crate::providers::{BOTH, PROMPT, ask, endpoint, remote, request, strict, user};

#[tokio::test]
async fn each_status_is_its_fault() {
    let error = Reply::error;
    let wait = Some(Duration::from_secs(7));
    for protocol in BOTH {
        let strict = strict().await;
        let provider = remote(&strict, protocol);
        let cases: Vec<(Reply, Fault)> = vec![
            (error(401, "no").into(), Fault::Auth),
            (error(403, "no").into(), Fault::Auth),
            (error(404, "no").into(), Fault::UnknownModel),
            (error(429, "slow").retry_after("7").into(), Fault::RateLimited(wait)),
            (error(429, "slow").into(), Fault::RateLimited(None)),
            (error(500, "oh").into(), Fault::Unavailable),
            (error(529, "busy").into(), Fault::Unavailable),
            (error(400, "temperature: out of range").into(), Fault::Refused),
            (error(402, "pay").into(), Fault::Refused),
            (error(302, "there").into(), Fault::Refused),
            (Reply::Drop, Fault::Unavailable),
        ];
        for (reply, fault) in cases {
            strict.push(reply.clone());
            let got = ask(&provider, &[user()]).await.unwrap_err();
            assert_eq!(got.fault, fault, "{protocol:?}: {reply:?}: {got}");
            assert_eq!(got.provider, "vendor");
        }
    }
}

#[tokio::test]
async fn a_wrong_key_model_or_length_is_told_apart() {
    for protocol in BOTH {
        let models = vec!["some-model".to_owned()];
        let rules = Rules { models, context: Some(500), ..Rules::default() };
        let strict = Strict::start(rules).await.unwrap();
        let wrong =
            Endpoint { key: Some(Key::new("sk-wrong-abcdef")), ..endpoint(&strict, protocol) };
        let error = ask(&Remote::new(wrong).unwrap(), &[user()]).await.unwrap_err();
        assert_eq!(error.fault, Fault::Auth);
        assert!(!error.to_string().contains("sk-wrong"), "{error}");

        let provider = remote(&strict, protocol);
        let messages = [user()];
        let other = Request { model: "other", ..request(&messages, &[]) };
        let error = provider.answer(other, &mut |_| {}).await.unwrap_err();
        assert_eq!(error.fault, Fault::UnknownModel);
        assert!(error.to_string().contains("other"), "{error}");

        let long = [Message::user("word ".repeat(1000))];
        assert_eq!(ask(&provider, &long).await.unwrap_err().fault, Fault::ContextFull);
    }
}

#[tokio::test]
async fn a_vendor_without_a_key_and_a_wrong_address_fail_before_anything_is_sent() {
    let strict = strict().await;
    let keyless = Endpoint { key: None, base_url: None, ..endpoint(&strict, Protocol::Anthropic) };
    assert_eq!(Remote::new(keyless).unwrap_err().fault, Fault::Auth);
    let nowhere =
        Endpoint { base_url: Some("localhost".to_owned()), ..endpoint(&strict, Protocol::OpenAi) };
    assert!(Remote::new(nowhere).unwrap_err().to_string().contains("base_url"));
    let split = Key::new("sk-one\nsk-two");
    let split = Endpoint { key: Some(split), ..endpoint(&strict, Protocol::OpenAi) };
    assert_eq!(Remote::new(split).unwrap_err().fault, Fault::Auth);
}

#[tokio::test]
async fn a_local_server_needs_no_key() {
    let rules = Rules { key: String::new(), ..Rules::default() };
    let strict = Strict::start(rules).await.unwrap();
    strict.push(Say::text("ok"));
    let keyless = Endpoint { key: None, ..endpoint(&strict, Protocol::OpenAi) };
    ask(&Remote::new(keyless).unwrap(), &[user()]).await.unwrap();
}

/// Every place where a stream can stop, and every way in which it can.
#[tokio::test]
async fn a_half_stream_is_never_an_answer() {
    let tokens = Tokens { input: 9, output: 9, ..Tokens::default() };
    for protocol in BOTH {
        let strict = strict().await;
        let provider = remote(&strict, protocol);
        let say = || Say::text("Hello.").calling("a", "read_file", &["{", "}"]).using(tokens);
        let mut whole_after = None;
        for n in 0..40 {
            for ending in [Ending::CutAfter(n), Ending::BrokenAfter(n), Ending::OverloadedAfter(n)]
            {
                strict.push(say().ending(ending));
                match ask(&provider, &[user()]).await {
                    Err(error) => {
                        let passing = [Fault::Truncated, Fault::Unavailable];
                        assert!(passing.contains(&error.fault), "{ending:?}: {error}");
                        // A broken connection may lose the last bytes that were sent.
                        let behind =
                            whole_after.is_some() && !matches!(ending, Ending::BrokenAfter(_));
                        assert!(!behind, "{ending:?} failed behind the end: {error}");
                    }
                    // The end was sent, so a break after it does not matter.
                    Ok(answer) => {
                        assert_eq!(answer.message.calls().next().unwrap().arguments, "{}");
                        assert_eq!(answer.usage.unwrap().total(), 18);
                        whole_after.get_or_insert(n);
                    }
                }
            }
        }
        assert!(whole_after.is_some_and(|n| n > 5), "{protocol:?}: {whole_after:?}");
    }
}

#[tokio::test]
async fn silence_times_out_before_and_within_an_answer() {
    for protocol in BOTH {
        let strict = strict().await;
        let hasty = Endpoint { timeout: Duration::from_millis(300), ..endpoint(&strict, protocol) };
        let provider = Remote::new(hasty).unwrap();
        strict.push(Reply::Hang);
        assert_eq!(ask(&provider, &[user()]).await.unwrap_err().fault, Fault::TimedOut);
        strict.push(Say::text("Hello.").ending(Ending::SilentAfter(4)));
        assert_eq!(ask(&provider, &[user()]).await.unwrap_err().fault, Fault::TimedOut);
        strict.push(Say::text("Hello.").after(Duration::from_millis(20)));
        assert!(ask(&provider, &[user()]).await.is_ok());
    }
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    for protocol in BOTH {
        let strict = strict().await;
        let provider = remote(&strict, protocol);
        strict.push(Reply::Hang);
        strict.push(Say::text("Hello.").ending(Ending::SilentAfter(4)));
        for nth in 1..=2 {
            let messages = [user()];
            tokio::select! {
                answer = ask(&provider, &messages) => panic!("it was answered: {answer:?}"),
                () = strict.arrived(nth) => {}
            }
            let closed = tokio::time::timeout(Duration::from_secs(10), strict.hung_up(nth));
            closed.await.expect("the connection stays open");
        }
    }
}

#[tokio::test]
async fn an_error_holds_neither_the_prompt_nor_the_key() {
    for protocol in BOTH {
        let strict = strict().await;
        let provider = remote(&strict, protocol);
        let key = strict.key().to_owned();
        let echo = format!("Invalid value: '{PROMPT}' is not allowed.");
        let half = format!("messages.0: ...{}...", &PROMPT[9..]);
        let leak = format!("Incorrect API key provided: {key}. Find yours elsewhere.");
        for (status, message) in [(400, &echo), (400, &half), (401, &leak), (500, &echo)] {
            strict.push(Reply::error(status, message));
            let error = ask(&provider, &[user()]).await.unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("nightjar") && !shown.contains("Halcyon"), "{shown}");
            assert!(!shown.contains(&key), "{shown}");
            assert!(shown.contains(&status.to_string()), "{shown}");
        }
        assert!(!format!("{provider:?}").contains(&key));
        strict.push(Reply::error(400, "temperature: must be below 2"));
        let error = ask(&provider, &[user()]).await.unwrap_err();
        assert_eq!(error.to_string(), "vendor: 400 Bad Request: temperature: must be below 2");
    }
}

const QUICK: Patience = Patience {
    attempts: 5,
    first: Duration::from_millis(1),
    longest: Duration::from_millis(5),
    total: Duration::from_secs(30),
    seed: 7,
};

#[tokio::test]
async fn passing_faults_are_asked_again_until_a_whole_answer_comes() {
    for protocol in BOTH {
        let strict = strict().await;
        let waits: Arc<Mutex<Vec<Waiting>>> = Arc::default();
        let heard = Arc::clone(&waits);
        let provider = Retrying::new(remote(&strict, protocol), QUICK)
            .telling(move |waiting| heard.lock().unwrap().push(waiting.clone()));
        strict.push(Reply::error(429, "slow").retry_after("0.05"));
        strict.push(Reply::error(503, "busy"));
        strict.push(Say::text("Half an ans").ending(Ending::CutAfter(5)));
        strict.push(Reply::Drop);
        strict.push(Say::text("Whole."));
        let answer = ask(&provider, &[user()]).await.unwrap();
        assert_eq!(answer.message.text(), "Whole.");
        let waits = waits.lock().unwrap();
        let attempts: Vec<_> = waits.iter().map(|waiting| waiting.attempt).collect();
        assert_eq!(attempts, [1, 2, 3, 4]);
        assert!(waits[0].wait >= Duration::from_millis(50));
        assert_eq!(waits[2].error.fault, Fault::Truncated);
        assert_eq!(strict.asked().len(), 5);
    }
}

/// Fails with these faults in turn, and repeats the last one.
#[derive(Debug)]
struct Failing(Mutex<VecDeque<Fault>>);

impl Failing {
    fn with(faults: &[Fault]) -> Self {
        Self(Mutex::new(faults.iter().copied().collect()))
    }
}

impl Provider for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn answer<'a>(
        &'a self,
        _: Request<'a>,
        _: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        let mut faults = self.0.lock().unwrap();
        let fault = if faults.len() > 1 { faults.pop_front().unwrap() } else { faults[0] };
        let error = CallError { provider: "failing".to_owned(), what: "no".to_owned(), fault };
        async move { Err(error) }.boxed()
    }
}

/// Asks once with these faults; returns the waits and the last fault.
async fn endure(faults: &[Fault], patience: Patience) -> (Vec<Duration>, Fault) {
    let waits: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let heard = Arc::clone(&waits);
    let provider = Retrying::new(Arc::new(Failing::with(faults)), patience)
        .telling(move |waiting| heard.lock().unwrap().push(waiting.wait));
    let fault = ask(&provider, &[user()]).await.unwrap_err().fault;
    let waits = waits.lock().unwrap().clone();
    (waits, fault)
}

#[tokio::test(start_paused = true)]
async fn waits_grow_with_chance_and_end() {
    let patience = Patience { seed: 3, ..Patience::default() };
    let (waits, fault) = endure(&[Fault::Unavailable], patience).await;
    assert_eq!(fault, Fault::Unavailable);
    assert_eq!(waits.len(), patience.attempts - 1);
    for (n, wait) in waits.iter().enumerate() {
        let base = patience.first * 2_u32.pow(u32::try_from(n).unwrap());
        assert!((base..=base * 2).contains(wait), "wait {n} is {wait:?}");
    }
    let (others, _) = endure(&[Fault::Unavailable], Patience { seed: 4, ..patience }).await;
    assert_ne!(waits, others, "chance is the same for all");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_is_not_asked_again() {
    let lasting = [Fault::Auth, Fault::UnknownModel, Fault::Refused, Fault::ContextFull];
    for fault in lasting.into_iter().chain([Fault::Declined, Fault::NotRunning]) {
        assert_eq!(endure(&[fault], Patience::default()).await, (vec![], fault));
        let (waits, last) = endure(&[Fault::TimedOut, fault], Patience::default()).await;
        assert_eq!((waits.len(), last), (1, fault));
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_would_take_too_long_is_not_begun() {
    let hour = Fault::RateLimited(Some(Duration::from_secs(3600)));
    assert_eq!(endure(&[hour], Patience::default()).await, (vec![], hour));
    let minute = Fault::RateLimited(Some(Duration::from_secs(60)));
    let (waits, _) = endure(&[minute], Patience { attempts: 100, ..Patience::default() }).await;
    assert_eq!(waits, vec![Duration::from_secs(60); 5]);
}
