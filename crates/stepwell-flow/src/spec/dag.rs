//! The dependency graph of a workflow's tasks.

use std::collections::BTreeMap;

use super::pattern::Workflow;

/// Tasks by their index in the spec, each with its dependencies. Unknown dependencies are left
/// out.
#[derive(Clone, Debug)]
pub struct Dag {
    deps: Vec<Vec<usize>>,
}

impl Dag {
    /// The graph of a workflow.
    #[must_use]
    pub fn of(flow: &Workflow) -> Self {
        let ids: BTreeMap<_, _> =
            flow.tasks.iter().enumerate().map(|(n, task)| (&task.id, n)).collect();
        let deps = flow
            .tasks
            .iter()
            .map(|task| task.deps.iter().filter_map(|dep| ids.get(dep).copied()).collect());
        Self { deps: deps.collect() }
    }

    /// The tasks in layers, each of which depends only on earlier layers. The error is a cycle:
    /// each task in it depends on the next.
    pub fn layers(&self) -> Result<Vec<Vec<usize>>, Vec<usize>> {
        // No recursion: a chain of tasks may be as long as a spec.
        let mut left: Vec<usize> = self.deps.iter().map(Vec::len).collect();
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); self.deps.len()];
        for (n, deps) in self.deps.iter().enumerate() {
            for dep in deps {
                waiting[*dep].push(n);
            }
        }
        let mut layers = Vec::new();
        let mut ready: Vec<usize> = (0..left.len()).filter(|n| left[*n] == 0).collect();
        while !ready.is_empty() {
            let mut next = Vec::new();
            for n in ready.iter().flat_map(|done| &waiting[*done]) {
                left[*n] -= 1;
                if left[*n] == 0 {
                    next.push(*n);
                }
            }
            next.sort_unstable();
            layers.push(std::mem::replace(&mut ready, next));
        }
        match left.iter().position(|n| *n > 0) {
            None => Ok(layers),
            Some(first) => Err(self.cycle(first, &left)),
        }
    }

    /// Finds a cycle. Every task that is left depends on another one that is left.
    fn cycle(&self, first: usize, left: &[usize]) -> Vec<usize> {
        let mut path = vec![first];
        let mut at = vec![None; left.len()];
        at[first] = Some(0);
        let mut here = first;
        while let Some(next) = self.deps[here].iter().copied().find(|dep| left[*dep] > 0) {
            if let Some(start) = at[next] {
                return path.split_off(start);
            }
            at[next] = Some(path.len());
            path.push(next);
            here = next;
        }
        path
    }

    /// For each task, the tasks that finish before it. The graph must have no cycle.
    #[must_use]
    pub fn predecessors(&self) -> Predecessors {
        let words = self.deps.len().div_ceil(64);
        let mut sets = vec![vec![0_u64; words]; self.deps.len()];
        for task in self.layers().unwrap_or_default().into_iter().flatten() {
            let mut set = std::mem::take(&mut sets[task]);
            for dep in &self.deps[task] {
                set[dep / 64] |= 1 << (dep % 64);
                for (word, more) in set.iter_mut().zip(&sets[*dep]) {
                    *word |= more;
                }
            }
            sets[task] = set;
        }
        Predecessors(sets)
    }
}

/// For each task, the tasks that finish before it, as a bit set.
#[derive(Clone, Debug)]
pub struct Predecessors(Vec<Vec<u64>>);

impl Predecessors {
    /// Whether `earlier` always finishes before `task`.
    #[must_use]
    pub fn contains(&self, task: usize, earlier: usize) -> bool {
        let word = self.0.get(task).and_then(|set| set.get(earlier / 64));
        word.is_some_and(|word| word >> (earlier % 64) & 1 == 1)
    }
}
