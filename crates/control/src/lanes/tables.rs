//! Writes of the Service Gateway's tables: each is of a part of one.

use arm::error::ArmError;
use model::plan::Action;
use model::world::Need;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// When entries of the tables were last written, in milliseconds of the controller's clock.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    pub services: BTreeMap<Arc<str>, u64>,
    pub locations: BTreeMap<IpAddr, u64>,
}

impl Touched {
    /// Notes which entries a write reaches at a time.
    pub fn note(&mut self, action: &Action, at_ms: u64) {
        match action {
            Action::UpdateServices(update) => {
                let names = update.names().map(|name| Arc::<str>::from(name.to_lowercase()));
                self.services.extend(names.map(|name| (name, at_ms)));
            }
            Action::UpdateLocations(update) => {
                self.locations.extend(update.locations.iter().map(|at| (at.location, at_ms)));
            }
            _ => {}
        }
    }

    /// A table has been stored that is certain to show what was written before a time, and so is
    /// every one that is asked for later: that need not be remembered.
    pub fn forget(&mut self, need: &Need, from_ms: u64) {
        match need {
            Need::GatewayServices => self.services.retain(|_, at| *at >= from_ms),
            _ => self.locations.retain(|_, at| *at >= from_ms),
        }
    }
}

/// Azure refuses to take away a service that addresses still list.
const STILL_MAPPED: &str = "ServiceWithOverlayMappingsCannotBeDeleted";

/// Whether a change writes one of the tables.
pub(crate) fn is_table(action: &Action) -> bool {
    matches!(action, Action::UpdateServices(_) | Action::UpdateLocations(_))
}

/// Whether Azure's table has addresses that we did not know of.
pub(crate) fn is_still_mapped(error: &ArmError) -> bool {
    error.code.eq_ignore_ascii_case(STILL_MAPPED) || error.message.contains(STILL_MAPPED)
}
