//! The verify and run phases: checks as recorded commands, a read-only reviewer, and the program
//! itself. Failures become tasks.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use stepwell::model::{NodeKey, Outcome, Phase};
use stepwell::{Event, Lane};
use stepwell_agent::permission::Mode;
use stepwell_agent::tool;

use super::agents::AgentPart;
use super::answers::Review;
use super::calls::{CallResult, PlannedCall};
use super::guide::{Guide, part};
use super::planning::Approved;
use super::prompts::{Background, Reviewed, left, no_room};
use super::schedule::{Finding, Verified, ready, repairs, room};
use super::work_plan::program_line;
use crate::halt::Halt;
use crate::pattern::step::lane;
use crate::spec::TryProgram;
use crate::text::last_part;

/// The default number of verification rounds.
pub const ROUNDS: u32 = 3;

/// How much of a command's output its node keeps; its lane has all of it.
const OUTPUT_BYTES: usize = 4_000;

/// The result of a check, or of a trial of the program.
struct Check {
    command: String,
    outcome: String,
    output: String,
}

impl Check {
    fn of(command: String, output: &Value) -> Self {
        let text =
            |key: &str| output.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { command, outcome: text("outcome"), output: text("response") }
    }

    /// Was it not allowed to run? Then it found nothing, and needs no repair.
    fn is_denied(&self) -> bool {
        self.outcome == "denied"
    }

    fn has_failed(&self) -> bool {
        self.outcome != "done" && !self.is_denied()
    }
}

/// A command, and whether it needs no approval.
struct Command {
    line: String,
    mode: Mode,
}

impl Guide<'_, '_> {
    /// Verifies and repairs until nothing fails.
    pub(super) async fn verify(
        &self,
        background: &Background,
        approved: &Approved,
    ) -> Result<Verified, Halt> {
        let rounds = self.config.rounds.map_or(ROUNDS, std::num::NonZeroU32::get);
        for round in 1.. {
            self.enter(Phase::Verify)?;
            let checks = self.run_checks(round, approved).await?;
            let mut findings = failed(&checks);
            findings.extend(self.review(round, background, approved, &checks).await?);
            let mut trial = None;
            if findings.is_empty() {
                trial = self.try_program(round, approved).await?;
                findings.extend(trial.as_ref().filter(|it| it.has_failed()).map(|it| {
                    let (program, output) = (it.command.clone(), it.output.clone());
                    Finding::Program { program, output }
                }));
            }
            let denied = checks.iter().chain(&trial).filter(|check| check.is_denied());
            let denied: Vec<String> = denied.map(|check| check.command.clone()).collect();
            if findings.is_empty() && !self.has_open_tasks(round + 1)? {
                let passed = checks.iter().filter(|check| check.outcome == "done").count();
                return Ok(Verified { passed, denied });
            }
            if !findings.is_empty() {
                let left = || left(round, &findings, &denied);
                if self.has_no_room(round)? {
                    self.leave("left", round, || no_room(&left()))?;
                } else if round.is_multiple_of(rounds) {
                    self.leave("left", round, left)?;
                }
                self.plan_repairs(round, &findings)?;
            }
            self.enter(Phase::Execute)?;
            self.execute(background).await?;
        }
        Err(Halt::NotStarted)
    }

    /// Runs the checks of a round, one after another.
    async fn run_checks(&self, round: u32, approved: &Approved) -> Result<Vec<Check>, Halt> {
        let mut checks = Vec::new();
        for (n, command) in self.commands(approved)?.into_iter().enumerate() {
            let n = u32::try_from(n).unwrap_or(u32::MAX);
            let output = self.check(round, n, &command).await?;
            checks.push(Check::of(command.line, &output));
        }
        Ok(checks)
    }

    /// The user's own checks and the plan's. Commands that the user wrote or approved need no
    /// approval; for others the mode decides.
    fn commands(&self, approved: &Approved) -> Result<Vec<Command>, Halt> {
        let own = self.config.checks.iter().map(|line| (line, Mode::Yolo));
        let mode = self.mode_for(approved)?;
        let planned = approved.plan.checks.iter().map(|line| (line, mode));
        let mut commands: Vec<Command> = Vec::new();
        for (line, mode) in own.chain(planned) {
            if commands.iter().all(|known| known.line != *line) {
                commands.push(Command { line: line.clone(), mode });
            }
        }
        Ok(commands)
    }

    /// The mode for the plan's commands.
    fn mode_for(&self, approved: &Approved) -> Result<Mode, Halt> {
        // A dry run sets up no agent, and runs nothing.
        if approved.by_person || self.flow.dry_run.is_some() {
            return Ok(Mode::Yolo);
        }
        let setup = self.flow.agents.setup(self.config.execute.as_str(), None);
        let fail = |why: String| self.flow.fail(&part("checks", 1), None, &why, None);
        Ok(setup.map_err(fail)?.rules.mode)
    }

    async fn check(&self, round: u32, n: u32, command: &Command) -> Result<Value, Halt> {
        let key = NodeKey::Check(round, n);
        let tools = tool::builtin();
        let Some(tool) = tools.into_iter().find(|tool| tool.spec().name == "run_command") else {
            return Err(self.flow.fail(&key, None, "there is no tool for commands", None));
        };
        self.call(&PlannedCall {
            key: &key,
            lane: check_lane(round, n),
            purpose: format!("Check of round {round}: {}", command.line),
            tool,
            arguments: json!({ "command": command.line }),
            mode: command.mode,
            dispatcher: None,
            starting: &Vec::new,
            finishing: &|_| Vec::new(),
            read: &|result| output(result, &command.line),
        })
        .await
    }

    /// The findings of a read-only reviewer.
    async fn review(
        &self,
        round: u32,
        background: &Background,
        approved: &Approved,
        checks: &[Check],
    ) -> Result<Vec<Finding>, Halt> {
        let told: Vec<_> =
            checks.iter().map(|check| (check.command.clone(), check.output.clone())).collect();
        let (tasks, files) = (self.tasks()?, self.changed_files()?);
        let reviewed =
            Reviewed { plan: &approved.plan, tasks: &tasks, checks: &told, files: &files };
        let output = self
            .ask_agent(&AgentPart {
                key: &part("review", round),
                agent: &self.config.review,
                lane: lane("review"),
                prompt: &|| Ok(background.review(&reviewed)),
                read: &|text| Ok(Review::parse(text)?.output()),
            })
            .await?;
        Ok(Review::of_output(&output).issues.into_iter().map(Finding::Issue).collect())
    }

    /// If a start command is known: starts the program, checks it, and stops it.
    async fn try_program(&self, round: u32, approved: &Approved) -> Result<Option<Check>, Halt> {
        let own = self.config.run.as_ref();
        let Some(program) = own.or(approved.plan.run.as_ref()) else { return Ok(None) };
        self.enter(Phase::Runtime)?;
        let mode = if own.is_some() { Mode::Yolo } else { self.mode_for(approved)? };
        let line = program_line(program);
        let key = part("runtime", round);
        let seen = self
            .call(&PlannedCall {
                key: &key,
                lane: runtime_lane(round),
                purpose: format!("Trial of round {round}: {line}"),
                tool: tool::try_program(),
                arguments: arguments(program),
                mode,
                dispatcher: None,
                starting: &Vec::new,
                finishing: &|_| Vec::new(),
                read: &|result| output(result, &program.command),
            })
            .await?;
        Ok(Some(Check::of(line, &seen)))
    }

    /// The lanes of checks, and of trials of the program.
    pub(super) fn lanes_of_trials(&self) -> Vec<Lane> {
        let state = self.flow.state();
        let keys = state.memo.nodes().filter_map(|(key, _)| key.parse::<NodeKey>().ok());
        let lanes = keys.filter_map(|key| match key {
            NodeKey::Check(round, n) => Some(check_lane(round, n)),
            NodeKey::Work(name, round) if name.as_str() == "runtime" => Some(runtime_lane(round)),
            _ => None,
        });
        lanes.collect()
    }

    /// Is there work without a finding: did the user add or reopen a task before the work was
    /// shipped?
    fn has_open_tasks(&self, visit: u32) -> Result<bool, Halt> {
        if self.was_entered(Phase::Execute, visit) {
            return Ok(true);
        }
        let open = !ready(&self.tasks()?, &BTreeSet::new()).is_empty();
        Ok(open && !self.was_entered(Phase::Ship, 1))
    }

    /// Is the plan too full for any finding of a round?
    fn has_no_room(&self, round: u32) -> Result<bool, Halt> {
        if self.flow.state().memo.result(&part("repairs", round)).is_some() {
            return Ok(false);
        }
        Ok(room(&self.tasks()?) == 0)
    }

    /// Adds repairs to the plan, as far as it has room.
    fn plan_repairs(&self, round: u32, findings: &[Finding]) -> Result<(), Halt> {
        let planned = self.part(&part("repairs", round), || {
            let tasks = self.tasks().map_err(|_| "the tasks cannot be read".to_owned())?;
            let added = repairs(round, findings, &tasks).map_err(|refused| refused.to_string())?;
            let ids: Vec<&str> = added.iter().map(|task| task.id.as_str()).collect();
            let output = json!({ "response": ids.join(", ") });
            let events = added.iter().map(|task| Event::from(self.plain_task(task.clone())));
            Ok((output, events.collect()))
        });
        planned.map(drop)
    }
}

fn check_lane(round: u32, n: u32) -> Lane {
    lane(&format!("check-{round}-{n}"))
}

fn runtime_lane(round: u32) -> Lane {
    lane(&format!("runtime-{round}"))
}

fn failed(checks: &[Check]) -> Vec<Finding> {
    let failed = checks.iter().filter(|check| check.has_failed());
    failed
        .map(|check| {
            let (command, output) = (check.command.clone(), check.output.clone());
            Finding::Check { command, output }
        })
        .collect()
}

fn arguments(program: &TryProgram) -> Value {
    let mut arguments = Map::from_iter([("command".to_owned(), json!(program.command))]);
    let url = program.url.as_ref().map(|url| ("url".to_owned(), json!(url)));
    let expect = program.expect.as_ref().map(|text| ("expect".to_owned(), json!(text)));
    let seconds = program.seconds.map(|seconds| ("seconds".to_owned(), json!(seconds)));
    arguments.extend(url.into_iter().chain(expect).chain(seconds));
    Value::Object(arguments)
}

/// A command's result as a node's output.
fn output(result: &CallResult, command: &str) -> Map<String, Value> {
    let outcome = match result.outcome {
        Outcome::Done => "done",
        Outcome::Denied => "denied",
        Outcome::TimedOut => "timed_out",
        Outcome::Failed | Outcome::Unknown => "failed",
    };
    Map::from_iter([
        ("response".to_owned(), last_part(&result.text, OUTPUT_BYTES).into()),
        ("command".to_owned(), command.into()),
        ("outcome".to_owned(), outcome.into()),
    ])
}
