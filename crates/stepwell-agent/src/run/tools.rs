//! Tool calls: started, inspected after an interruption, answered.

use std::sync::Arc;

use stepwell::model::{Answer, Effect, Outcome, ToolCall, ToolTarget, Who};
use stepwell::{Event, Message};

use stepwell_files::safe_fs;

use super::news::ticking;
use super::{Cancel, Run, RunEvent};
use crate::error::{Error, Result};
use crate::machine::{Found, Settled, inspect, told};
use crate::tool::{Changed, Content, Done, Plan, Tool};

impl Run<'_> {
    pub(super) fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.setup.tools.iter().find(|tool| tool.spec().name == name).cloned()
    }

    /// Runs a tool. Its start is on disk before it begins.
    pub(super) async fn run_tool(&mut self, call: ToolCall, mut cut: Cancel<'_>) -> Result<()> {
        let Some(tool) = self.tool(&call.name) else {
            return self.finish_unrun(&call, &Settled::NoSuchTool);
        };
        if let Some(why) = self.calls.unkept.get(&call.id) {
            let why = (*why).to_owned();
            return self.finish(&call, &Done { outcome: Outcome::Denied, ..Done::failed(why) }, 0);
        }
        let arguments: serde_json::Value = match serde_json::from_str(&call.arguments) {
            Ok(arguments) => arguments,
            Err(error) => {
                let why = format!("the arguments are not JSON: {error}");
                return self.finish(&call, &Done::failed(why), 0);
            }
        };
        let plan = match tool.plan(&arguments, &self.setup.place) {
            Ok(plan) => plan,
            Err(why) => return self.finish(&call, &Done::failed(why), 0),
        };
        if self.setup.dry_run && tool.effect() != Effect::Pure {
            let text = format!("dry run, not done: {}", tool.preview(&arguments));
            return self.finish(&call, &Done::ok(text), 0);
        }
        self.setup.place.tail.clear();
        self.files.look_before(&*tool);
        self.files.keep_before(&plan)?;
        self.start(&call, &*tool, plan)?;
        let begun = tokio::time::Instant::now();
        if call.name == "phase" {
            self.find_phase()?;
        }
        let place = &self.setup.place;
        let decided = tool.decide(&arguments, place, &self.state.tasks);
        let done = match decided.or_else(|| tool.enter(&arguments, self.state.phase)) {
            Some(mut done) => {
                if let Some(change) = &done.phase {
                    let lessons = self.lessons(change.to);
                    done.text.push_str(&lessons);
                }
                done
            }
            None => {
                let running = async {
                    tokio::select! {
                        done = tool.run(&arguments, place) => Some(done),
                        _ = cut.off() => None,
                    }
                };
                let (events, redactor) = (&self.front.events, &self.setup.redactor);
                let done = ticking(running, |ran| {
                    let tail = redactor.redact(&place.tail.lines()).into_owned();
                    let (call, tool) = (call.id.clone(), call.name.clone());
                    events.tell(RunEvent::ToolOutput { call, tool, ran, tail });
                });
                match done.await {
                    Some(done) => done,
                    // As after a crash: the next run finds out what the call changed.
                    None => {
                        let (call, name) = (call.id, call.name);
                        self.front.events.tell(RunEvent::ToolCutOff { call, tool: name });
                        let changed = self.files.after_cut_off(&*tool).await?;
                        return if changed.is_empty() { Ok(()) } else { self.record(changed) };
                    }
                }
            }
        };
        let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.files.look_after(&*tool)?;
        self.finish(&call, &done, took)
    }

    pub(super) fn start(&mut self, call: &ToolCall, tool: &dyn Tool, plan: Plan) -> Result<()> {
        let started = stepwell::model::ToolStarted {
            lane: self.lane.clone(),
            call_id: call.id.clone(),
            tool: call.name.clone(),
            effect: tool.effect(),
            arguments: stepwell::model::Digest::of(call.arguments.as_bytes()),
            targets: plan.targets,
            child: plan.child,
        };
        let who = Who::from(format!("{}, by mode {}", self.me(), self.setup.rules.mode));
        let mut events: Vec<Event> =
            Vec::from_iter(self.closed_gate(call, Answer::ALLOW_ONCE, who));
        events.push(started.into());
        self.record(events)?;
        if !self.ended.tools_used.contains(&call.name) {
            self.ended.tools_used.push(call.name.clone());
        }
        let preview = self.preview(call);
        let preview = self.setup.redactor.redact(&preview).into_owned();
        let (call, tool) = (call.id.clone(), call.name.clone());
        self.front.events.tell(RunEvent::ToolStarted { call, tool, preview });
        Ok(())
    }

    /// Checks whether an interrupted call made its change to files.
    pub(super) async fn inspect(
        &mut self,
        call: ToolCall,
        targets: &[ToolTarget],
        cut: Cancel<'_>,
    ) -> Result<()> {
        let look = |target: &ToolTarget| safe_fs::look(&self.setup.place.files(), &target.path);
        let now: Result<Vec<Content>, String> = targets.iter().map(look).collect();
        let found = now.map_or(Found::Other, |now| {
            inspect(targets, &now.iter().map(Content::digest).collect::<Vec<_>>())
        });
        match found {
            Found::Made => {
                let changed = targets.iter().filter_map(|target| {
                    let (path, after) = (target.path.clone(), look(target).ok()?);
                    let before = self.files.before_interruption(target, &after);
                    Some(Changed { path, before, after })
                });
                let changed = changed.collect();
                let text = "done (verified after an interruption)";
                self.finish(&call, &Done { changed, ..Done::ok(text) }, 0)
            }
            Found::Untouched => self.run_tool(call, cut).await,
            Found::Other => self.finish_unrun(&call, &Settled::Unknown),
        }
    }

    /// Answers a call without running it.
    pub(super) fn finish_unrun(&mut self, call: &ToolCall, settled: &Settled) -> Result<()> {
        let (text, outcome) = told(settled);
        self.files.note_unseen(self.tool(&call.name).as_deref(), settled);
        self.finish(call, &Done { outcome, ..Done::failed(text) }, 0)
    }

    /// Records what a tool did, together with the result for the model.
    pub(super) fn finish(&mut self, call: &ToolCall, done: &Done, duration_ms: u64) -> Result<()> {
        let who = match done.outcome {
            Outcome::Denied if !self.setup.dry_run => self.me(),
            _ => Who::from("stepwell"),
        };
        // An automatic answer to a question has the result's text as its reason.
        let why = Answer::Deny { reason: Some(done.text.clone()), never: false };
        let closed = self.closed_gate(call, why, who);
        let mut events: Vec<Event> = Vec::from_iter(closed);
        for changed in &done.changed {
            events.push(self.files.event_of(changed)?.into());
        }
        events.extend(self.files.take_captured());
        events.extend(done.tasks.iter().cloned().map(Event::from));
        if let Some(change) = &done.phase {
            events.push(change.clone().into());
            events.push(stepwell::model::Checkpoint::of_phase(change.to).into());
        }
        self.files.note(&events);
        let finished = stepwell::model::ToolFinished {
            lane: self.lane.clone(),
            call_id: call.id.clone(),
            outcome: done.outcome,
            duration_ms,
        };
        let is_error = done.outcome != Outcome::Done;
        let text = if done.text.is_empty() { "(no output)".to_owned() } else { done.text.clone() };
        let mut message = Message::tool_result(call.id.clone(), text).in_lane(self.lane.clone());
        for part in &mut message.parts {
            if let stepwell::model::Part::ToolResult(result) = part {
                result.is_error = is_error;
            }
        }
        events.push(finished.into());
        events.push(message.into());
        match self.record(events) {
            Err(Error::Store(stepwell::Error::Illegal { why, .. })) if done.phase.is_some() => {
                // Another person may have changed the phase just now.
                self.find_phase()?;
                return self.finish(call, &Done::failed(why), duration_ms);
            }
            other => other?,
        }
        let told = self.setup.redactor.redact(&done.text).into_owned();
        let (call, tool, outcome) = (call.id.clone(), call.name.clone(), done.outcome);
        self.front.events.tell(RunEvent::ToolFinished { call, tool, outcome, told });
        Ok(())
    }
}
