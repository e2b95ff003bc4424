//! A loader of strands-cli's sessions, written from what is known of that system and sharing
//! nothing with the code that writes them: it takes what that system takes, and says what
//! that system would still do.

use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A session as strands-cli has it in memory.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) id: String,
    pub(crate) status: String,
    pub(crate) state: Value,
    pub(crate) session: Value,
}

const PATTERNS: [&str; 7] = [
    "chain",
    "workflow",
    "routing",
    "parallel",
    "evaluator_optimizer",
    "orchestrator_workers",
    "graph",
];

/// Loads a folder, or says what that system would not take.
pub(crate) fn load(folder: &Path) -> Result<Loaded, String> {
    let read =
        |name: &str| std::fs::read(folder.join(name)).map_err(|error| format!("{name}: {error}"));
    let json = |name: &str| -> Result<Value, String> {
        let bytes = read(name)?;
        if !bytes.is_ascii() {
            return Err(format!("{name} is not ASCII"));
        }
        serde_json::from_slice(&bytes).map_err(|error| format!("{name}: {error}"))
    };
    let (session, state) = (json("session.json")?, json("pattern_state.json")?);
    let want = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
    let metadata = &session["metadata"];
    for name in [
        "session_id",
        "workflow_name",
        "spec_hash",
        "pattern_type",
        "status",
        "created_at",
        "updated_at",
    ] {
        want(metadata[name].is_string(), name)?;
    }
    want(metadata["error"].is_null() || metadata["error"].is_string(), "error")?;
    let id = metadata["session_id"].as_str().unwrap().to_owned();
    want(id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'), "session_id")?;
    want(
        folder.file_name().unwrap().to_str().unwrap() == format!("session_{id}"),
        "the folder's name",
    )?;
    want(PATTERNS.contains(&metadata["pattern_type"].as_str().unwrap()), "pattern_type")?;
    let status = metadata["status"].as_str().unwrap().to_owned();
    want(["running", "paused", "completed", "failed"].contains(&status.as_str()), "status")?;
    for name in ["created_at", "updated_at"] {
        want(metadata[name].as_str().unwrap().parse::<stepwell::model::Time>().is_ok(), name)?;
    }
    let variables = session["variables"].as_object().ok_or("variables")?;
    want(variables.values().all(Value::is_string), "variables are texts")?;
    want(session["runtime_config"].is_object(), "runtime_config")?;
    want(session["token_usage"]["total_input_tokens"].is_u64(), "total_input_tokens")?;
    want(session["token_usage"]["total_output_tokens"].is_u64(), "total_output_tokens")?;
    want(session["token_usage"]["by_agent"].is_object(), "by_agent")?;
    let artifacts = session["artifacts_written"].as_array().ok_or("artifacts_written")?;
    want(artifacts.iter().all(Value::is_string), "artifacts_written are paths")?;
    want(state.is_object(), "pattern_state is an object")?;
    let hash: String =
        Sha256::digest(read("spec_snapshot.yaml")?).iter().map(|b| format!("{b:02x}")).collect();
    want(metadata["spec_hash"].as_str() == Some(&hash), "spec_hash is that of the spec")?;
    Ok(Loaded { id, status, state, session })
}

impl Loaded {
    /// What strands-cli takes as done.
    pub(crate) fn done(&self) -> Vec<String> {
        let state = &self.state;
        let names = |list: &Value| -> Vec<String> {
            list.as_array()
                .into_iter()
                .flatten()
                .map(|it| it.as_str().unwrap().to_owned())
                .collect()
        };
        let steps = |state: &Value| -> Vec<String> {
            let history = state["step_history"].as_array().cloned().unwrap_or_default();
            let done = usize::try_from(state["current_step"].as_u64().unwrap_or(0)).unwrap();
            assert!(done <= history.len(), "a step without a record");
            (0..done)
                .map(|n| format!("{n}: {}", history[n]["response"].as_str().unwrap()))
                .collect()
        };
        let flag = |name: &str| state[name] == Value::Bool(true);
        match self.session["metadata"]["pattern_type"].as_str().unwrap() {
            "chain" => steps(state),
            "workflow" => {
                let done = names(&state["completed_tasks"]);
                done.iter()
                    .for_each(|id| assert!(state["task_results"][id]["response"].is_string()));
                done
            }
            "routing" => {
                let mut done = Vec::new();
                if flag("router_executed") {
                    done.push(format!(
                        "route {}",
                        state["router_decision"]["chosen_route"].as_str().unwrap()
                    ));
                    assert_eq!(state["chosen_route"], state["router_decision"]["chosen_route"]);
                    done.extend(steps(&state["route_state"]));
                }
                done
            }
            "parallel" => {
                let mut done = names(&state["completed_branches"]);
                done.iter()
                    .for_each(|id| assert!(state["branch_results"][id]["response"].is_string()));
                done.extend(
                    flag("reduce_executed")
                        .then(|| state["final_response"].as_str().unwrap().to_owned()),
                );
                done
            }
            "evaluator_optimizer" => {
                let history = state["iteration_history"].as_array().unwrap();
                let mut done: Vec<String> = history
                    .iter()
                    .map(|it| format!("{} {}", it["draft"].as_str().unwrap(), it["score"]))
                    .collect();
                done.extend(state["current_draft"].as_str().map(str::to_owned));
                done
            }
            "orchestrator_workers" => {
                let mut done = Vec::new();
                if flag("workers_executed") {
                    let results = state["worker_results"].as_array().unwrap();
                    done.extend(
                        results.iter().map(|it| it["response"].as_str().unwrap().to_owned()),
                    );
                }
                for name in ["reduce", "writeup"] {
                    let answer = state[format!("{name}_response")].as_str();
                    done.extend(
                        flag(&format!("{name}_executed")).then(|| answer.unwrap().to_owned()),
                    );
                }
                done
            }
            _ => {
                let path = names(&state["execution_path"]);
                path.iter()
                    .for_each(|id| assert!(state["node_results"][id]["response"].is_string()));
                assert_eq!(state["total_steps"].as_u64(), Some(path.len() as u64));
                path
            }
        }
    }
}
