//! What a store is, what an acknowledged step survives in it, and how long it keeps sessions.

use stepwell::Stepwell;
use stepwell::sqlite::SqliteStore;
use stepwell::store::query::Filter;
use stepwell_postgres::{Address, Durability, Role, Standby, Status};
use stepwell_wire::{Durability as Survives, StoreInfo, StoreRetention, StoreStandby};

use crate::config::{Key, Settings, Source};
use crate::engine::team_store;
use crate::error::{Error, Result};
use crate::workspace::Workspace;

/// What this workspace's store is.
///
/// # Errors
/// If it cannot be read.
pub fn describe(workspace: &Workspace, well: &Stepwell) -> Result<StoreInfo> {
    if let Some(store) = team_store(well) {
        return Ok(of_server(&store.status()?, store.address()));
    }
    Ok(StoreInfo {
        engine: "SQLite".to_owned(),
        version: SqliteStore::engine_version().to_owned(),
        store: workspace.place.database().display().to_string(),
        namespace: None,
        schema: None,
        role: None,
        sessions: well.store().count(&Filter::default())?.total(),
        durability: Survives::Local,
        because: "each step is flushed to this disk before it is acknowledged".to_owned(),
        standbys: Vec::new(),
    })
}

fn of_server(found: &Status, address: &Address) -> StoreInfo {
    let (durability, because) = match found.durability() {
        Durability::None(why) => (Survives::None, why),
        Durability::Local(why) => (Survives::Local, why),
        Durability::Replicated(why) => (Survives::Replicated, why),
        Durability::Unknown(why) => (Survives::Unknown, why),
    };
    let line = |standby: &Standby| StoreStandby {
        name: standby.name.clone(),
        state: standby.state.clone(),
        sync: standby.sync.clone(),
        behind_bytes: standby.behind,
    };
    StoreInfo {
        engine: "PostgreSQL".to_owned(),
        version: found.server.clone(),
        store: address.to_string(),
        namespace: Some(address.namespace().to_owned()),
        schema: Some(found.schema),
        role: Some(match found.role {
            Role::Primary => "primary".to_owned(),
            Role::Standby => "standby".to_owned(),
        }),
        sessions: found.sessions,
        durability,
        because,
        standbys: found.standbys.iter().map(line).collect(),
    }
}

/// What is to change of how long a team's store keeps sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionChange {
    /// After how many days in the trash sessions are erased.
    pub days: Option<u32>,
    /// After how many days without activity sessions are moved to the trash.
    pub cleanup: Option<CleanupChange>,
}

/// What is to change of when sessions are moved to the trash by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanupChange {
    /// After so many days without activity.
    After(u32),
    /// Never.
    Never,
}

/// Settings that do not count for a team's store, which its owner has rules for.
const OF_THE_STORE: [&str; 2] = ["sessions.retention_days", "sessions.auto_cleanup"];

/// Where the value of a setting came from, or why it does not count here.
#[must_use]
pub fn setting_source(workspace: &Workspace, key: &Key) -> Source {
    match workspace.place.team.is_some() && OF_THE_STORE.contains(&key.name) {
        true => Source::StoreDecides,
        false => workspace.config.source(key).clone(),
    }
}

/// How long a store keeps deleted sessions: a team's store has rules of its own, and for a store
/// in a folder the user's settings count.
///
/// # Errors
/// If a team's store cannot be asked.
pub fn retention(well: &Stepwell, settings: &Settings) -> Result<StoreRetention> {
    let Some(store) = team_store(well) else {
        let cleanup = settings.auto_cleanup.then(|| settings.cleanup_after_days.get());
        return Ok(StoreRetention {
            retention_days: settings.retention_days.get(),
            cleanup_after_days: cleanup,
            owner: None,
        });
    };
    let kept = store.retention()?;
    Ok(StoreRetention {
        retention_days: kept.days,
        cleanup_after_days: kept.cleanup_after_days,
        owner: Some(store.owner()?.role),
    })
}

/// Changes how long a team's store keeps deleted sessions. Only its owner may.
///
/// # Errors
/// If the store is in a folder, is another role's, or cannot be written.
pub fn change_retention(well: &Stepwell, change: RetentionChange) -> Result<()> {
    let store = team_store(well).ok_or(Error::RetentionIsSetting)?;
    let owner = store.owner()?;
    if !owner.may_change {
        return Err(Error::NotStoreOwner { role: owner.role });
    }
    let mut kept = store.retention()?;
    kept.days = change.days.unwrap_or(kept.days);
    kept.cleanup_after_days = match change.cleanup {
        Some(CleanupChange::After(days)) => Some(days),
        Some(CleanupChange::Never) => None,
        None => kept.cleanup_after_days,
    };
    Ok(store.set_retention(kept)?)
}
