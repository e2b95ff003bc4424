//! Checks the names in templates before anything is paid for: they exist, and the steps and
//! tasks they refer to are done by then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::MAX_PROBLEMS;
use super::sites::{Site, Visible};
use crate::names::{listed, nearest};
use crate::spec::pattern::{EdgeTarget, Pattern};
use crate::spec::problem::{Path, Problem};
use crate::spec::{Dag, Name, Predecessors, Spec};
use crate::template::Template;

/// A step that a template refers to by its number.
static INDEXED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bsteps\s*\[\s*(\d+)\s*\]").expect("a valid constant"));

/// Names that every template sees.
const EVERYWHERE: [&str; 2] = ["last_response", "hitl_response"];

/// The flow's own name, unless a variable has this name.
const NAME: &str = "name";

/// The names that a pattern sets.
pub(in crate::spec) fn pattern_names(pattern: &Pattern) -> BTreeSet<&'static str> {
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
        Pattern::Guided(_) => &[],
    };
    EVERYWHERE.into_iter().chain(own.iter().copied()).collect()
}

/// More names that a pattern sets, as strands-cli does, unless a variable has the name.
fn strands_names(pattern: &Pattern) -> &'static [&'static str] {
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
    let mut checker = Checker::new(spec);
    checker.gates = all.iter().any(|site| site.gate.is_some());
    for site in all {
        if problems.len() >= MAX_PROBLEMS {
            return;
        }
        for (key, template) in &site.templates {
            checker.check_template(template, Some(site), &|| site.path.at(*key), problems);
        }
    }
    for (name, agent) in &spec.agents {
        let path = Path::root().at("agents").at(name.as_str());
        let path = if agent.prompt.file.is_some() { path } else { path.at("prompt") };
        for name in agent.prompt.template.names() {
            problems.extend(checker.check_prompt(name, agent.prompt.template.source(), &path));
        }
    }
    for (n, artifact) in spec.outputs.artifacts.iter().enumerate() {
        let path = Path::root().at("outputs").at("artifacts").at(n);
        checker.check_template(&artifact.path, None, &|| path.at("path"), problems);
        checker.check_template(&artifact.from, None, &|| path.at("from"), problems);
    }
    if let Pattern::Graph(graph) = &spec.pattern {
        let edges = Path::root().at("pattern").at("config").at("edges");
        for (n, edge) in graph.edges.iter().enumerate() {
            let EdgeTarget::Choose(choices) = &edge.target else { continue };
            for (c, choice) in choices.iter().enumerate() {
                let path = || edges.at(n).at("choose").at(c).at("when");
                let names = Names { used: choice.when.names(), source: choice.when.source() };
                checker.check_names(names, None, &path, problems);
            }
        }
    }
}

/// The names that a template uses, and its source.
#[derive(Clone, Copy)]
struct Names<'a> {
    used: &'a BTreeSet<String>,
    source: &'a str,
}

/// Checks templates against the names of a spec.
struct Checker<'a> {
    spec: &'a Spec,
    known: BTreeSet<&'a str>,
    /// Whether any step asks a person.
    gates: bool,
    /// The indexes of a workflow's tasks, and which tasks finish before which.
    tasks: BTreeMap<&'a str, usize>,
    predecessors: Option<Predecessors>,
}

impl<'a> Checker<'a> {
    fn new(spec: &'a Spec) -> Self {
        let mut known = pattern_names(&spec.pattern);
        known.extend(["range", NAME]);
        known.extend(strands_names(&spec.pattern));
        let known = known.into_iter().chain(spec.inputs.names()).collect();
        let (mut tasks, mut predecessors) = (BTreeMap::new(), None);
        if let Pattern::Workflow(flow) = &spec.pattern {
            tasks = flow.tasks.iter().enumerate().map(|(n, task)| (task.id.as_str(), n)).collect();
            predecessors = Some(Dag::of(flow).predecessors());
        }
        Self { spec, known, gates: false, tasks, predecessors }
    }

    fn check_template(
        &self,
        template: &Template,
        site: Option<&Site<'a>>,
        path: &dyn Fn() -> Path,
        problems: &mut Vec<Problem>,
    ) {
        let names = Names { used: template.names(), source: template.source() };
        self.check_names(names, site, path, problems);
    }

    fn check_names(
        &self,
        names: Names<'_>,
        site: Option<&Site<'a>>,
        path: &dyn Fn() -> Path,
        problems: &mut Vec<Problem>,
    ) {
        let mut reported = BTreeSet::new();
        for name in names.used {
            let mut parts = name.split('.');
            let first = parts.next().unwrap_or_default();
            if site.is_some_and(|site| site.vars.contains(&first)) {
                continue;
            }
            let problem = if !self.known.contains(first) {
                Some(self.unknown_name(first, site))
            } else if first == "hitl_response" && !self.gates {
                Some(Problem::new(
                    Path::root(),
                    "`hitl_response` is the answer of a person, but no step asks one",
                ))
            } else {
                parts.next().and_then(|second| self.check_member(first, second, site))
            };
            if let Some(problem) = problem
                && !is_guarded(name, names.source)
                && reported.insert(problem.what.clone())
            {
                problems.push(Problem { path: path(), ..problem });
            }
        }
        let index = self.check_index(names.source, site);
        problems.extend(index.map(|problem| Problem { path: path(), ..problem }));
    }

    /// Checks a system prompt. It is rendered before any answer exists, so it sees only variables.
    fn check_prompt(&self, name: &str, source: &str, path: &Path) -> Option<Problem> {
        let first = name.split('.').next().unwrap_or_default();
        if first == NAME || self.spec.inputs.names().any(|name| name == first) {
            return None;
        }
        if is_guarded(first, source) {
            return None;
        }
        let pattern = &self.spec.pattern;
        if !pattern_names(pattern).contains(first) && !strands_names(pattern).contains(&first) {
            return Some(Problem { path: path.clone(), ..self.unknown_name(first, None) });
        }
        let what = format!("a prompt can only use variables, and `{first}` is not one");
        let hint = "use it in the step's `input`".to_owned();
        Some(Problem::new(path.clone(), what).with_hint(Some(hint)))
    }

    fn unknown_name(&self, name: &str, site: Option<&Site<'a>>) -> Problem {
        let of_site = site.map(|site| site.vars.clone()).unwrap_or_default();
        let known = || self.known.iter().copied().filter(|name| *name != "range");
        let near = nearest(name, known().chain(of_site));
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                format!("declare a variable with `inputs: {{required: {{{name}: string}}}}`")
            }
        };
        let what = format!("unknown name `{name}`; expected one of: {}", listed(known()));
        Problem::new(Path::root(), what).with_hint(Some(hint))
    }

    /// Checks that a task, branch or node exists and is done by then.
    fn check_member(&self, of: &str, name: &str, site: Option<&Site<'a>>) -> Option<Problem> {
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
            let what = format!("unknown name `{of}.{name}`; expected one of: {}", listed(names));
            return Some(Problem::new(Path::root(), what).with_hint(hint));
        }
        let Some(Site { visible: Visible::Task(task), .. }) = site else { return None };
        let (task_at, name_at) = (self.tasks.get(task.as_str())?, self.tasks.get(name)?);
        let predecessors = self.predecessors.as_ref()?;
        (of == "tasks" && !predecessors.contains(*task_at, *name_at)).then(|| {
            let what = format!("task `{name}` may not be done before task `{task}` starts");
            Problem::new(Path::root(), what).with_hint(Some(format!("add `{name}` to its `deps`")))
        })
    }

    /// Checks that a step of a sequence exists and is done by then.
    fn check_index(&self, source: &str, site: Option<&Site<'a>>) -> Option<Problem> {
        let before = match (site.map(|site| site.visible), &self.spec.pattern) {
            (Some(Visible::StepsBefore(before)), _) => before,
            (None, Pattern::Chain(chain)) => chain.steps.len(),
            _ => return None,
        };
        let used = INDEXED.captures_iter(source).filter_map(|it| it[1].parse::<usize>().ok());
        let used = used.into_iter().find(|n| *n >= before)?;
        let what = match before {
            0 => format!("`steps[{used}]` does not exist yet: this is the first step"),
            1 => format!("`steps[{used}]` does not exist yet: only `steps[0]` is done by then"),
            _ => format!(
                "`steps[{used}]` does not exist yet: only `steps[0]` to `steps[{}]` are done by then",
                before - 1
            ),
        };
        Some(Problem::new(Path::root(), what))
    }
}

/// Whether a template handles the case that a name has no value.
fn is_guarded(name: &str, source: &str) -> bool {
    let mut parts = name.split('.').take(2);
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    guards(first, source) || second.is_some_and(|second| guards(second, source))
}

fn guards(name: &str, source: &str) -> bool {
    let guard =
        format!(r"\b{}\s*(\|\s*d(efault)?\b|is\s+(not\s+)?(un)?defined\b)", regex::escape(name));
    Regex::new(&guard).is_ok_and(|guard| guard.is_match(source))
}
