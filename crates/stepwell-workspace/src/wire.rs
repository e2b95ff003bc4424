//! What programs get to read of worktrees.

use stepwell_wire::Worktree;

use crate::worktrees::SubagentWorktree;

impl From<&SubagentWorktree> for Worktree {
    fn from(site: &SubagentWorktree) -> Self {
        let (head, state) = (site.session.as_ref().map(|it| &it.head), site.state.as_ref());
        Self {
            id: site.id.clone(),
            branch: site.worktree.branch.clone(),
            path: site.worktree.path.display().to_string(),
            state: state.ok().map(|it| it.state.into()),
            paths: state.map(|it| it.paths.clone()).unwrap_or_default(),
            commit: state.ok().and_then(|it| it.stray.clone()),
            error: state.err().cloned(),
            in_use: site.used_by.is_some(),
            used_by: site.used_by.as_ref().map(|it| it.id.clone()),
            status: head.map(|head| head.status),
            task: head.map(|head| head.task.clone()),
            parent: head.and_then(|head| head.origin.parent().cloned()),
        }
    }
}
