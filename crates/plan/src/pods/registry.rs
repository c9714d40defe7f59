//! One call of `updateServices` for all that are ready.

use crate::draft::Draft;
use crate::own::pod_names;
use model::ResourceId;
use model::ServiceUid;
use model::gateway::{Direction, GatewayService, GatewayServiceUpdate, ServicesUpdate};
use model::plan::{Action, Change};
use model::report::{Until, Wait};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Gateway services in one call. Nobody has published a limit; a refused batch is halved until the
/// one at fault is found, which takes about twice log2 of this.
pub(crate) const SERVICES_PER_CALL: usize = 100;

/// What is to be written into the table of gateway services.
#[derive(Debug, Default)]
pub(super) struct Registry {
    entries: BTreeMap<ServiceUid, Entry>,
    coming: BTreeSet<ServiceUid>,
}

/// Who has, or is about to have, an entry to be written.
#[derive(Debug)]
pub(super) struct Registrations {
    /// Those whose entries can be written.
    pub ready: BTreeSet<ServiceUid>,
    /// Those whose entries can be soon.
    pub coming: BTreeSet<ServiceUid>,
}

#[derive(Debug)]
enum Entry {
    Put(GatewayServiceUpdate),
    Delete(Arc<str>, Direction),
}

impl Registry {
    /// Registers or changes a service.
    pub fn put(
        &mut self,
        cause: &ServiceUid,
        service: GatewayService,
        network: Option<ResourceId>,
    ) {
        let network = network.filter(|_| !service.pools.is_empty());
        let update = GatewayServiceUpdate { service, network };
        self.entries.insert(cause.clone(), Entry::Put(update));
    }

    /// Takes a service away.
    pub fn delete(&mut self, cause: &ServiceUid, name: &Arc<str>, direction: Direction) {
        self.entries.insert(cause.clone(), Entry::Delete(Arc::clone(name), direction));
    }

    /// Notes that a service will be ready soon.
    pub fn expect(&mut self, cause: &ServiceUid) {
        self.coming.insert(cause.clone());
    }

    /// Drafts the call; `awaited` others that are not looked at now will be ready soon.
    pub fn conclude(self, draft: &mut Draft<'_>, awaited: usize) -> Registrations {
        let target = pod_names::services_table(draft.policy);
        let mut update = ServicesUpdate::default();
        let mut causes = BTreeSet::new();
        let registrations =
            Registrations { ready: self.entries.keys().cloned().collect(), coming: self.coming };
        for (uid, entry) in self.entries {
            if causes.len() == SERVICES_PER_CALL {
                let until = Until::Written;
                draft.wait(&uid, Wait::Resource { id: target.clone(), until });
                continue;
            }
            match entry {
                Entry::Put(put) => update.put.push(put),
                Entry::Delete(name, direction) => update.delete.push((name, direction)),
            }
            causes.insert(uid);
        }
        if causes.is_empty() {
            return registrations;
        }
        let others = registrations.coming.difference(&causes).count() + awaited;
        let mut waits = Vec::new();
        if others > 0 && causes.len() < SERVICES_PER_CALL {
            waits.push(Wait::Gathering { others });
        }
        let action = Action::UpdateServices(update);
        draft.change(Change::new(target, action, causes, waits));
        registrations
    }
}
