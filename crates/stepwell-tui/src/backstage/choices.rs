//! Models and agents that can be chosen.

use std::collections::BTreeSet;
use stepwell_workspace::RecentModelsFile;

use super::reads::Reader;
use crate::clean::Clean;
use crate::effect::{Reply, Visit};

impl Reader {
    /// Finds out whether a model can be asked.
    pub(super) fn check_model(&mut self, name: String, visit: Visit) {
        let known = self.runtime.check_model(&name);
        self.reply(known.map(|()| Reply::Model { name, visit }));
    }

    fn agent_names(&self) -> BTreeSet<String> {
        let own = self.runtime.workspace().config.agents.keys().cloned();
        stepwell_agent::agent::builtin().into_keys().chain(own).collect()
    }

    pub(super) fn agents(&mut self) {
        let names = self.agent_names().iter().map(|name| Clean::line(name)).collect();
        self.reply(Ok(Reply::Agents(names)));
    }

    /// Finds out whether there is an agent of a name.
    pub(super) fn check_agent(&mut self, name: String, visit: Visit) {
        let names = self.agent_names();
        self.reply(Ok(match names.contains(&name) {
            true => Reply::Agent { name, visit },
            false => {
                let why = Clean::line(&format!("there is no agent {name}"));
                let known: Vec<_> = names.into_iter().collect();
                let hint = Some(Clean::line(&format!("there are {}", known.join(", "))));
                Reply::Failed { why, hint }
            }
        }));
    }

    pub(super) fn models(&mut self) {
        let mut names: Vec<Clean> = Vec::new();
        if let Some(file) = RecentModelsFile::of(&self.runtime.workspace().host) {
            match file.read() {
                Ok(models) => {
                    let favourites = models.favourites().into_iter();
                    let all = favourites.chain(models.recent.iter().map(String::as_str));
                    for name in all.map(Clean::line) {
                        if !names.contains(&name) {
                            names.push(name);
                        }
                    }
                }
                Err(error) => return self.reply(Err(error.into())),
            }
        }
        self.reply(Ok(Reply::Models(names)));
    }
}
