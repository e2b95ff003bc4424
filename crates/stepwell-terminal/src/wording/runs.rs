//! The words for what the runtime says in types: what would help, and what a person should know.

use stepwell::SessionId;
use stepwell::log::Head;
use stepwell::model::{Mode, Settings, Time, Who, WorkChange};
use stepwell::trust::{Allowed, Disregarded};
use stepwell_agent::run::{Measure, Notice as RunNotice, Whole};
use stepwell_runtime::{Hears, Notice};

use super::ASKED;
use crate::text::{ago, count, cut, one_line, visible};

/// How many sessions that crashed are named; the others are counted.
const NAMED: usize = 5;

/// How much of a task is shown.
const TASK: usize = 60;

/// How many lines of a difference are shown.
const LINES: usize = 40;

/// When something that was said is heard.
#[must_use]
pub fn heard(id: &SessionId, hears: Hears) -> String {
    match hears {
        Hears::NextRun => format!("{id} does not run; its next run hears it"),
        Hears::RunnerThatWaits => format!("{id} hears it once its question is answered"),
        Hears::Now => format!("{id} hears it now, or once its tool is done"),
        Hears::Runner => format!("{id} hears it before its model's next call"),
    }
}

/// When a session that runs is compacted.
#[must_use]
pub fn compacted_later(head: &Head) -> String {
    let id = &head.id;
    match head.flow.is_some() {
        true => format!("{id} runs: each agent's conversation is compacted before its next call"),
        false => format!("{id} runs: it is compacted before its model's next call"),
    }
}

/// The hint where a conversation has no model: it is chosen there.
#[must_use]
pub fn choose_model(model: &str, key: Option<&str>) -> String {
    let key = key.map(|key| format!(" (with a key in {key})")).unwrap_or_default();
    format!(
        "/model {model}{key} chooses one for this conversation; stepwell config set --user \
         model.name {model} keeps it; stepwell demo needs none"
    )
}

/// What a notice about how a run begins says on stderr, if it is worth a line there.
pub fn runtime_notice(notice: &Notice, now: Time, is_live: bool) -> Option<String> {
    Some(match notice {
        Notice::NotSaved { is_flow } => {
            let what = if *is_flow { "flow" } else { "run" };
            format!(
                "sessions.auto_save is off: this {what} is kept in memory only and cannot be \
                 resumed."
            )
        }
        Notice::Warning { what, why } => format!("warning: {what}: {why}"),
        Notice::OtherAgent { used, system, instead } => format!(
            "{used:?} is an agent of {system}; {instead} takes its place here (--agent NAME \
             names another)"
        ),
        Notice::SomebodyElses { session } => format!(
            "{session} is somebody else's: this counts only if their configuration has talk.from \
             = \"store\""
        ),
        // In a pipe nobody waits.
        Notice::ServersSlow { .. } if !is_live => return None,
        Notice::ServersSlow { names } => {
            let what = if names.len() == 1 { "MCP server" } else { "MCP servers" };
            visible(&format!("Waiting for {what} {} to start", names.join(", ")))
        }
        Notice::ServerAbsent { name, why } => {
            visible(&format!("MCP server {name}: {why}; going on without it"))
        }
        Notice::Server(text) => visible(text),
        Notice::ToolsLeftOut { count: left, most } => format!(
            "{} left out: a model is given {most} at most; name those that matter in the agent's \
             tools",
            count(*left, "tool")
        ),
        Notice::CutOff { sessions } => cut_off(sessions, now),
        Notice::RewindFinished { session, began, left } => {
            let mut text =
                format!("A rewind of {session} that was cut off at seq {began} is finished now.");
            for left in left {
                text.push_str(&format!("\n  left {}: {}", one_line(&left.path), left.why));
            }
            text
        }
        Notice::RewindConflict(left) => {
            format!("conflict {}: {}", one_line(&left.path), left.why)
        }
        Notice::HalfRewound { session, began } => format!(
            "warning: a rewind of {session} was cut off at seq {began}; its files may be half \
             moved\nhint: stepwell rewind {session} --finish finishes it; so does the next run here"
        ),
        Notice::SpecChanged { path, diff } => format!(
            "warning: {path} changed since this flow began; the stored spec is used \
             (--use-current-spec goes on with the changed one)\n{}",
            shortened(diff)
        ),
        Notice::SpecDiff(diff) => shortened(diff),
        Notice::ToolTakenAway { whose, tool } => format!(
            "warning: {whose} does not get {tool}: security.guardrails.allow_tools does not name it"
        ),
        Notice::WithoutKey { address, provider } => format!(
            "runtime.host: {address} is asked without your key for {provider}, which is not for a \
             place that a spec names; to give it one, describe it in your own configuration: \
             [providers.NAME] with base_url = \"{address}\" and key_env"
        ),
        Notice::Disregarded { it, mode, model, namesake } => {
            let told = disregarded(it, *mode, model.as_deref().unwrap_or("the spec's"));
            let why = "; your home folder does not note that this was you";
            if *namesake { told + why } else { told }
        }
        Notice::BudgetNotYours { counts, recorded } => format!(
            "somebody else had set the session's budget to {}, which does not count for you: \
             {counts} does (--budget-total to change that)",
            recorded.map_or_else(|| "none".to_owned(), |budget| format!("${budget}")),
            counts = format_args!("${counts}")
        ),
        Notice::LeaseNotRenewed { session, why } => format!(
            "warning: the lease of {session} is not renewed: {why}; no tool is started until it is"
        ),
        Notice::FirstSeen { session } => {
            format!(
                "{session}: first seen here, so that no earlier change to its log would be noticed"
            )
        }
        Notice::LogAltered { session } => format!(
            "The log of {session} lacks what you last allowed in it, so nothing that it says was \
             allowed counts: you are asked again"
        ),
        Notice::Answered { gate, asked, answer } => {
            let (asked, answer) = (cut(&one_line(asked), ASKED), cut(&one_line(answer), ASKED));
            format!("[{}] {asked}: {answer}", visible(gate))
        }
        Notice::NotTaken { why, .. } => format!("{why}: your answer is not taken"),
    })
}

/// As much of a difference as is shown.
fn shortened(diff: &str) -> String {
    let lines: Vec<&str> = diff.lines().collect();
    let mut text = lines.iter().take(LINES).copied().collect::<Vec<_>>().join("\n");
    if lines.len() > LINES {
        text.push_str(&format!("\n… {} more lines", lines.len() - LINES));
    }
    text
}

/// What a person is told of sessions that crashed, when work begins again in their workspace.
fn cut_off(sessions: &[stepwell_runtime::CutOffSession], now: Time) -> String {
    let mut text = match sessions {
        [_] => "A session was cut off here:".to_owned(),
        all => format!("{} sessions were cut off here:", all.len()),
    };
    for session in sessions.iter().take(NAMED) {
        let (when, task) = (ago(session.updated_at, now), cut(&one_line(&session.task), TASK));
        text.push_str(&format!("\n  {}  {when}  {task}", session.session));
    }
    if sessions.len() > NAMED {
        text.push_str("\n  and more: stepwell sessions --status interrupted");
    }
    let id = sessions.first().map_or("ID", |session| session.session.as_str());
    text.push_str(&format!("\nhint: stepwell resume {id}"));
    text
}

/// What a notice of a run says.
pub fn run_notice(notice: &RunNotice) -> String {
    let longest = "with the longest answer that it may give (model.max_output)";
    match notice {
        RunNotice::Disregarded(it) => disregarded(it, Mode::ConfirmAll, ""),
        RunNotice::TokensEstimated { provider } => {
            format!("{provider} does not say how many tokens it used: they are estimated")
        }
        RunNotice::ShorterAnswers { provider, tokens } => format!(
            "{provider} takes less than was thought: answers may have {tokens} tokens from here on \
             (the model's context can be set)"
        ),
        RunNotice::TokensSpent { next, used, most } => format!(
            "the next call may take {next} tokens {longest}; {used} of at most {most} are used"
        ),
        RunNotice::BudgetSpent { next, spent, most, of } => {
            let of = match of {
                Whole::Run => " in this run",
                Whole::Session => " in the whole session",
                Whole::Flow => "",
            };
            format!(
                "the next call may cost ${next} {longest}; ${spent} of at most ${most} is spent{of}"
            )
        }
        RunNotice::PriceUnknown { most } => {
            format!("what the next call costs is not known, so a budget of ${most} cannot be kept")
        }
        RunNotice::NearlySpent { what } => match what {
            Measure::Tokens { used, most } => {
                format!("warning: {used} of at most {most} tokens are used")
            }
            Measure::Cost { used, most } => {
                format!("warning: ${used} of at most ${most} is spent")
            }
            Measure::Calls { used, most } => {
                format!("warning: {used} of at most {most} calls are made")
            }
        },
        RunNotice::SubagentInTrash { session } => format!(
            "subagent {session} is in the trash: stepwell trash restore {session}, then resume this"
        ),
        RunNotice::SubagentHeld { session, holder } => {
            format!("subagent {session} is run by {holder}: resume this when it is done")
        }
        RunNotice::WorkspaceIsCopy { session } => {
            format!("subagent {session}: this workspace is a copy; resume this in the original")
        }
        RunNotice::Retrying { error, wait, attempt, attempts } => {
            format!("{error}; asking again in {wait:.0?} ({attempt} of {attempts})")
        }
        RunNotice::OthersRequest { who, at, text, is_worked_on } => {
            let text = cut(&one_line(text), WORD);
            let asked = match is_worked_on {
                true => {
                    ", so you are asked before anything is changed for it, until you say something \
                     yourself (--mode to accept it, talk.from in your configuration says whose \
                     words count)"
                }
                false => "",
            };
            format!("{who} said {text:?} in this session at {at}; your model is shown it{asked}")
        }
        RunNotice::AnswerRefused { gate, why } => format!("[{gate}] {why}"),
    }
}

/// Who did something, and as whom a server knows them.
pub fn who(who: &Who) -> String {
    who.in_full()
}

/// What a run was last set to work with, and by whom.
pub fn settings(settings: &Settings) -> String {
    let mode = settings.mode.map(|mode| format!("mode {mode}"));
    let parts = [settings.agent.clone(), settings.model.clone(), mode];
    let revoked = settings.revokes.then(|| "nothing that was allowed before counts".to_owned());
    let parts: Vec<String> = parts.into_iter().chain([revoked]).flatten().collect();
    match parts.is_empty() {
        true => format!("as usual, by {}", settings.who),
        false => format!("{}, by {}", parts.join(", "), settings.who),
    }
}

/// What somebody asked a runner to do.
pub fn work_change(change: &WorkChange) -> String {
    match change {
        WorkChange::Phase(phase) => format!("to phase {phase}"),
        WorkChange::Checkpoint { name, .. } => format!("checkpoint {name}"),
        WorkChange::Ask { text } => format!("asks {text}"),
        WorkChange::Answer { question, text } => format!("answers {question}: {text}"),
        WorkChange::Compact => "a shorter conversation".to_owned(),
    }
}

/// What somebody else allowed, and what counts in its place.
fn disregarded(it: &Disregarded, mode: Mode, model: &str) -> String {
    let who = who(&it.who);
    match &it.what {
        Allowed::Mode(theirs) => format!(
            "{who} had set mode {theirs}, which does not count for you: {mode} does (--mode \
             {theirs} to change that)"
        ),
        Allowed::Model(theirs) => format!(
            "{who} had chosen the model {theirs}, which does not count for you: {model} is used \
             (--model {theirs} to change that)"
        ),
        Allowed::Always(rule) => {
            format!(
                "{who} had allowed {rule} for good, which does not count for you: you are asked"
            )
        }
        Allowed::Answer { gate, answer } => format!(
            "{who} had answered {gate} with {answer:?}, which does not count for you: it is asked \
             again (talk.from in your configuration says whose answers count)",
            answer = answer.text()
        ),
        Allowed::Word(text) => format!(
            "{who} said {text:?}, which does not count for you (talk.from in your configuration \
             says whose words count)",
            text = cut(&one_line(text), WORD)
        ),
    }
}

/// How much is shown of what somebody said.
const WORD: usize = 60;
