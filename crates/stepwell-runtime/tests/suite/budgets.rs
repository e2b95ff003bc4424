//! What a session may cost, changed while it runs.

use stepwell::model::{Answer, Money};
use stepwell::{Status, StopReason};
use stepwell_runtime::{ResumeRequest, RunHandle, RunOptions, RunReport, RunRequest};

use crate::test_env::{TestEnv, asked};

/// Three calls of $5 each; the first asks for something.
const DEAR: &str = "
- {text: I make it., cost: '5', calls: [{tool: run_command, arguments: {command: 'true'}}]}
- {text: I look., cost: '5', calls: [{tool: list_files, arguments: {}}]}
- {text: Made., cost: '5'}
";

fn dollars(text: &str) -> Money {
    text.parse().unwrap()
}

/// A run that asks something, with or without a budget.
fn dear(env: &TestEnv, budget_total: Option<Money>) -> RunHandle {
    let options = RunOptions { budget_total, ..env.options(DEAR) };
    env.runtime.start(RunRequest { options, ..RunRequest::new("make it") }).unwrap()
}

/// Has something done while the run waits for an answer, then lets it go on.
fn meanwhile(handle: RunHandle, work: impl FnOnce(&RunHandle)) -> RunReport {
    let open = asked(&mut handle.events());
    work(&handle);
    handle.answer(&open.gate.id, Answer::ALLOW_ONCE, "ann@desk").unwrap();
    handle.join().unwrap()
}

#[test]
fn a_run_that_works_keeps_to_the_budget_that_it_is_given() {
    let env = TestEnv::new();
    let report = meanwhile(dear(&env, None), |handle| handle.set_budget(dollars("6")));
    let ended = (report.status, report.reason, report.spent.cost);
    assert_eq!(ended, (Status::Partial, Some(StopReason::BudgetExceeded), dollars("10")));
    // It is on record as the user's own, so that the next run goes by it as well.
    let well = env.runtime.workspace().open_existing(stepwell::sqlite::Access::Read).unwrap();
    assert_eq!(well.info(&report.session).unwrap().head.budget, Some(dollars("6")));
    let weighed = well.weigh(&report.session).unwrap();
    assert_eq!(weighed.mine.budget, Some(dollars("6")));
    // More is more, also for a run that was given less.
    let more = meanwhile(dear(&env, Some(dollars("6"))), |handle| {
        handle.set_budget(dollars("20"));
    });
    assert_eq!((more.status, more.spent.cost), (Status::Success, dollars("15")));
}

#[test]
fn somebody_elsewhere_lowers_a_budget_and_raises_none() {
    let env = TestEnv::new();
    let less = meanwhile(dear(&env, None), |handle| {
        env.elsewhere().set_budget(handle.id(), dollars("6")).unwrap();
    });
    assert_eq!(less.reason, Some(StopReason::BudgetExceeded));
    let more = meanwhile(dear(&env, Some(dollars("6"))), |handle| {
        env.elsewhere().set_budget(handle.id(), dollars("20")).unwrap();
    });
    assert_eq!(more.reason, Some(StopReason::BudgetExceeded));
}

#[test]
fn a_budget_that_is_raised_between_runs_counts_for_the_next() {
    let env = TestEnv::new();
    let stopped = meanwhile(dear(&env, Some(dollars("6"))), |_| ());
    assert_eq!(stopped.reason, Some(StopReason::BudgetExceeded));
    env.runtime.set_budget(&stopped.session, dollars("20")).unwrap();
    let more = ResumeRequest { options: env.options(DEAR), ..env.resume(&stopped.session) };
    let report = env.runtime.resume(more).unwrap().join().unwrap();
    assert_eq!((report.status, report.budget_total), (Status::Success, Some(dollars("20"))));
    let refused = env.inside_run().set_budget(&stopped.session, dollars("99"));
    assert!(refused.is_err(), "a run does not set its own budget");
}
