//! The environment variables that started programs do not receive.

use std::process::Command;

pub use stepwell_catalog::{IN_RUN, is_private_variable};

use super::ToolEnv;

/// Removes the variables that a program must not see.
pub(crate) fn hide_keys(command: &mut Command, place: &ToolEnv) {
    for name in &place.withheld {
        command.env_remove(name);
    }
    command.env(IN_RUN, "1");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_withheld_is_not_passed_on() {
        let mut place = ToolEnv::new(".".into());
        place.withheld.insert("LOCAL_KEY".to_owned());
        let mut command = Command::new("true");
        hide_keys(&mut command, &place);
        let hidden: Vec<_> = command.get_envs().collect();
        let marked = (IN_RUN.as_ref(), Some("1".as_ref()));
        assert_eq!(hidden, [("LOCAL_KEY".as_ref(), None), marked]);
    }
}
