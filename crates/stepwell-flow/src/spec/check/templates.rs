//! What templates ask for, told before anything is paid: names that are there, of steps and
//! tasks that are done by then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::MOST_PROBLEMS;
use super::sites::{Sees, Site};
use crate::names::{listed, nearest};
use crate::spec::pattern::{Go, Pattern};
use crate::spec::place::{Path, Problem};
use crate::spec::{Before, Dag, Name, Spec};
use crate::template::Template;

/// A step that is asked for by its number.
static INDEXED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bsteps\s*\[\s*(\d+)\s*\]").expect("it is written here"));

/// What every template sees.
const EVERYWHERE: [&str; 2] = ["last_response", "hitl_response"];

/// The flow's own name, unless a variable is called so.
const NAME: &str = "name";

/// The names that a pattern gives to what was said.
pub(in crate::spec) fn of_pattern(pattern: &Pattern) -> BTreeSet<&'static str> {
    let own: &[&str] = match pattern {
        Pattern::Chain(_) => &["steps"],
        Pattern::Workflow(_) => &["tasks"],
        Pattern::Routing(_) => &["router", "routes", "steps"],
        Pattern::Parallel(_) => &["branches", "steps"],
        Pattern::EvaluatorOptimizer(_) => &["accepted", "draft", "evaluation", "iteration"],
        Pattern::OrchestratorWorkers(_) => {
            &["plan", "reduce_response", "round", "subtask", "task", "workers", "writeup_response"]
        }
        Pattern::Graph(_) => &["nodes", "iteration", "terminal_node", "total_steps"],
    };
    EVERYWHERE.into_iter().chain(own.iter().copied()).collect()
}

/// Names of strands-cli that a pattern offers besides, unless a variable has them.
fn offered(pattern: &Pattern) -> &'static [&'static str] {
    match pattern {
        Pattern::EvaluatorOptimizer(_) => &[
            "current_draft",
            "current_evaluation",
            "final_score",
            "history",
            "iteration_index",
            "iterations",
            "last_evaluation",
            "max_iters",
            "min_score",
        ],
        Pattern::OrchestratorWorkers(_) => &[
            "num_workers",
            "orchestrator_response",
            "round_count",
            "subtasks",
            "task_count",
            "worker_count",
        ],
        Pattern::Graph(_) => &["iteration_counts"],
        _ => &[],
    }
}

/// Checks every template of a spec.
pub(super) fn check<'a>(spec: &'a Spec, all: &[Site<'a>], problems: &mut Vec<Problem>) {
    let mut seen = Seen::new(spec);
    seen.gates = all.iter().any(|site| site.gate.is_some());
    for site in all {
        if problems.len() >= MOST_PROBLEMS {
            return;
        }
        for (key, template) in &site.templates {
            seen.template(template, Some(site), &|| site.path.at(*key), problems);
        }
    }
    for (name, agent) in &spec.agents {
        let path = Path::root().at("agents").at(name.as_str());
        let path = if agent.prompt.file.is_some() { path } else { path.at("prompt") };
        for asked in agent.prompt.template.names() {
            problems.extend(seen.of_prompt(asked, agent.prompt.template.source(), &path));
        }
    }
    for (n, artifact) in spec.outputs.artifacts.iter().enumerate() {
        let path = Path::root().at("outputs").at("artifacts").at(n);
        seen.template(&artifact.path, None, &|| path.at("path"), problems);
        seen.template(&artifact.from, None, &|| path.at("from"), problems);
    }
    if let Pattern::Graph(graph) = &spec.pattern {
        let edges = Path::root().at("pattern").at("config").at("edges");
        for (n, edge) in graph.edges.iter().enumerate() {
            let Go::Choose(choices) = &edge.go else { continue };
            for (c, choice) in choices.iter().enumerate() {
                let path = || edges.at(n).at("choose").at(c).at("when");
                seen.names(choice.when.names(), choice.when.source(), None, &path, problems);
            }
        }
    }
}

/// What there is to see in a spec.
struct Seen<'a> {
    spec: &'a Spec,
    known: BTreeSet<&'a str>,
    /// Is there a question for a human at all?
    gates: bool,
    /// A workflow's tasks by name, and which are done before which.
    tasks: BTreeMap<&'a str, usize>,
    before: Option<Before>,
}

impl<'a> Seen<'a> {
    fn new(spec: &'a Spec) -> Self {
        let mut known = of_pattern(&spec.pattern);
        known.extend(["range", NAME]);
        known.extend(offered(&spec.pattern));
        let known = known.into_iter().chain(spec.inputs.names()).collect();
        let (mut tasks, mut before) = (BTreeMap::new(), None);
        if let Pattern::Workflow(flow) = &spec.pattern {
            tasks = flow.tasks.iter().enumerate().map(|(n, task)| (task.id.as_str(), n)).collect();
            before = Some(Dag::of(flow).before());
        }
        Self { spec, known, gates: false, tasks, before }
    }

    fn template(
        &self,
        template: &Template,
        site: Option<&Site<'a>>,
        path: &dyn Fn() -> Path,
        problems: &mut Vec<Problem>,
    ) {
        self.names(template.names(), template.source(), site, path, problems);
    }

    fn names(
        &self,
        asked: &BTreeSet<String>,
        source: &str,
        site: Option<&Site<'a>>,
        path: &dyn Fn() -> Path,
        problems: &mut Vec<Problem>,
    ) {
        let mut told = BTreeSet::new();
        for name in asked {
            let mut parts = name.split('.');
            let first = parts.next().unwrap_or_default();
            let of_site = site.is_some_and(|site| site.vars.contains(&first));
            if of_site {
                continue;
            }
            let wrong = if !self.known.contains(first) {
                Some(self.nowhere(first, site))
            } else if first == "hitl_response" && !self.gates {
                Some(Problem::new(
                    Path::root(),
                    "`hitl_response` is what a human answers, and no step asks one",
                ))
            } else {
                parts.next().and_then(|second| self.member(first, second, site))
            };
            if let Some(wrong) = wrong
                && !guarded(name, source)
                && told.insert(wrong.what.clone())
            {
                problems.push(Problem { path: path(), ..wrong });
            }
        }
        problems.extend(self.index(source, site).map(|wrong| Problem { path: path(), ..wrong }));
    }

    /// A prompt is told before anything was said: it sees variables alone.
    fn of_prompt(&self, asked: &str, source: &str, path: &Path) -> Option<Problem> {
        let first = asked.split('.').next().unwrap_or_default();
        if first == NAME || self.spec.inputs.names().any(|name| name == first) {
            return None;
        }
        if guarded(first, source) {
            return None;
        }
        let pattern = &self.spec.pattern;
        if !of_pattern(pattern).contains(first) && !offered(pattern).contains(&first) {
            return Some(Problem { path: path.clone(), ..self.nowhere(first, None) });
        }
        let what = format!("a prompt sees variables only, and `{first}` is none");
        let hint = "ask for it in the step's `input`".to_owned();
        Some(Problem::new(path.clone(), what).hinting(Some(hint)))
    }

    /// A name that nothing has.
    fn nowhere(&self, name: &str, site: Option<&Site<'a>>) -> Problem {
        let of_site = site.map(|site| site.vars.clone()).unwrap_or_default();
        let known = || self.known.iter().copied().filter(|name| *name != "range");
        let near = nearest(name, known().chain(of_site));
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                format!("a variable is declared with `inputs: {{required: {{{name}: string}}}}`")
            }
        };
        let what = format!("there is no `{name}` here; there is {}", listed(known()));
        Problem::new(Path::root(), what).hinting(Some(hint))
    }

    /// A task, branch or node that is not there, or not done by then.
    fn member(&self, of: &str, name: &str, site: Option<&Site<'a>>) -> Option<Problem> {
        // A method of the mapping itself.
        if ["items", "keys", "values", "get"].contains(&name) {
            return None;
        }
        let found = match (of, &self.spec.pattern) {
            ("tasks", Pattern::Workflow(_)) => self.tasks.contains_key(name),
            ("branches", Pattern::Parallel(parallel)) => {
                parallel.branches.iter().any(|branch| branch.id.as_str() == name)
            }
            ("nodes", Pattern::Graph(graph)) => graph.nodes.contains_key(name),
            _ => return None,
        };
        if !found {
            let names: Vec<&str> = match &self.spec.pattern {
                Pattern::Parallel(it) => it.branches.iter().map(|one| one.id.as_str()).collect(),
                Pattern::Graph(graph) => graph.nodes.keys().map(Name::as_str).collect(),
                _ => self.tasks.keys().copied().collect(),
            };
            let hint = nearest(name, names.iter().copied());
            let hint = hint.map(|near| format!("did you mean `{of}.{near}`?"));
            let what = format!("there is no `{of}.{name}`; there is {}", listed(names));
            return Some(Problem::new(Path::root(), what).hinting(hint));
        }
        let Some(Site { sees: Sees::Task(task), .. }) = site else { return None };
        let (task_at, name_at) = (self.tasks.get(task.as_str())?, self.tasks.get(name)?);
        let before = self.before.as_ref()?;
        (of == "tasks" && !before.contains(*task_at, *name_at)).then(|| {
            let what = format!("task `{name}` need not be done before task `{task}`");
            Problem::new(Path::root(), what).hinting(Some(format!("add `{name}` to its `deps`")))
        })
    }

    /// A step that is not there, or not done by then.
    fn index(&self, source: &str, site: Option<&Site<'a>>) -> Option<Problem> {
        let before = match (site.map(|site| site.sees), &self.spec.pattern) {
            (Some(Sees::StepsBefore(before)), _) => before,
            (None, Pattern::Chain(chain)) => chain.steps.len(),
            _ => return None,
        };
        let asked = INDEXED.captures_iter(source).filter_map(|it| it[1].parse::<usize>().ok());
        let asked = asked.into_iter().find(|n| *n >= before)?;
        let what = match before {
            0 => format!("`steps[{asked}]` is not there: no step is done before this one"),
            1 => format!("`steps[{asked}]` is not there: only `steps[0]` is done by then"),
            _ => format!(
                "`steps[{asked}]` is not there: only `steps[0]` to `steps[{}]` are done by then",
                before - 1
            ),
        };
        Some(Problem::new(Path::root(), what))
    }
}

/// Does a template ask first whether a name is there?
fn guarded(name: &str, source: &str) -> bool {
    let mut parts = name.split('.').take(2);
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    guards(first, source) || second.is_some_and(|second| guards(second, source))
}

fn guards(name: &str, source: &str) -> bool {
    let guard =
        format!(r"\b{}\s*(\|\s*d(efault)?\b|is\s+(not\s+)?(un)?defined\b)", regex::escape(name));
    Regex::new(&guard).is_ok_and(|guard| guard.is_match(source))
}
