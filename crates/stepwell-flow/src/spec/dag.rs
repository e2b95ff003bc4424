//! What depends on what, among a workflow's tasks.

use std::collections::BTreeMap;

use super::pattern::Workflow;

/// Tasks by their place in the spec, each with those that it depends on. What is not known
/// is left out.
#[derive(Clone, Debug)]
pub struct Dag {
    deps: Vec<Vec<usize>>,
}

impl Dag {
    /// What a workflow's tasks depend on.
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

    /// The tasks in layers, each depending only on those before; or, if they wait for each
    /// other, a circle of them, each waiting for the next.
    pub fn layers(&self) -> Result<Vec<Vec<usize>>, Vec<usize>> {
        // Without recursion: a chain of tasks may be as long as a spec.
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
            Some(first) => Err(self.circle(first, &left)),
        }
    }

    /// Whoever is left waits for someone who is left.
    fn circle(&self, first: usize, left: &[usize]) -> Vec<usize> {
        let mut way = vec![first];
        let mut at = vec![None; left.len()];
        at[first] = Some(0);
        let mut here = first;
        while let Some(next) = self.deps[here].iter().copied().find(|dep| left[*dep] > 0) {
            if let Some(start) = at[next] {
                return way.split_off(start);
            }
            at[next] = Some(way.len());
            way.push(next);
            here = next;
        }
        way
    }

    /// For each task, which ones are done before it. The tasks have no circle.
    #[must_use]
    pub fn before(&self) -> Before {
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
        Before(sets)
    }
}

/// For each task, which ones are done before it.
#[derive(Clone, Debug)]
pub struct Before(Vec<Vec<u64>>);

impl Before {
    /// Is one task done before another?
    #[must_use]
    pub fn contains(&self, task: usize, earlier: usize) -> bool {
        let word = self.0.get(task).and_then(|set| set.get(earlier / 64));
        word.is_some_and(|word| word >> (earlier % 64) & 1 == 1)
    }
}
