//! Notices for the log, and the ids under which they can be followed.

use crate::controller::Controller;
use crate::effect::{Effect, Notice, NoticeKind};
use model::{ServiceName, ServiceUid};
use plan::own::pod_names;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Controller {
    /// Names of Services, of those that are gone as far as known.
    pub(super) fn names_of(
        &self,
        uids: &BTreeSet<ServiceUid>,
    ) -> impl Iterator<Item = ServiceName> {
        uids.iter().filter_map(move |uid| self.name_of(uid))
    }

    fn name_of(&self, uid: &ServiceUid) -> Option<ServiceName> {
        let known = self.world.kubernetes.services.get(uid).map(|s| s.name.clone());
        known.or_else(|| self.observers.events.said.get(uid).map(|s| s.name.clone()))
    }

    /// Names of the egress gateways among what a write is for.
    pub(super) fn gateways_of(
        &self,
        causes: &BTreeSet<ServiceUid>,
    ) -> impl Iterator<Item = Arc<str>> {
        let gateways = causes.iter().filter(|cause| pod_names::is_gateway(cause));
        let gateways = gateways.filter(move |cause| self.name_of(cause).is_none());
        gateways.map(|cause| Arc::from(cause.as_str()))
    }

    /// A correlation id in the form of a UUID, from the instance and the number of the call that
    /// comes next. It is given once, whether that call is made or not.
    pub(crate) fn correlation(&mut self) -> String {
        let number = self.calls.last.max(self.calls.named) + 1;
        self.calls.named = number;
        let instance = &self.options.instance;
        format!("{instance:0>8}-0000-4000-8000-{number:012x}")
    }

    /// A Service was changed by its owner: notices of what follows carry a new change id.
    pub(crate) fn name_change(&mut self, uid: &ServiceUid) {
        self.observers.changes.last += 1;
        let (instance, number) = (&self.options.instance, self.observers.changes.last);
        let id = format!("{instance:0>8}-0001-4000-8000-{number:012x}");
        self.observers.changes.ids.insert(uid.clone(), Arc::from(id));
    }

    pub(crate) fn say(
        &mut self,
        now_ms: u64,
        kind: NoticeKind,
        services: &BTreeSet<ServiceUid>,
        text: String,
        correlation: Option<String>,
    ) {
        let changes =
            services.iter().filter_map(|uid| self.observers.changes.ids.get(uid).cloned());
        let changes = changes.collect();
        let services = self.names_of(services).collect();
        let notice = Notice { at_ms: now_ms, kind, services, text, changes, correlation };
        self.calls.effects.push(Effect::Say(notice));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::sample::{policy, service};

    #[test]
    fn what_a_write_is_for_is_a_service_or_an_egress_gateway() {
        let mut controller = Controller::new(policy(), Options::default());
        let web = service(None);
        controller.note_name(&web);
        let gone = ServiceUid::new("00000009-1111-4222-8333-0123456789ab");
        let causes = BTreeSet::from([web.uid, gone, ServiceUid::new("team-a")]);
        let services: Vec<ServiceName> = controller.names_of(&causes).collect();
        let gateways: Vec<Arc<str>> = controller.gateways_of(&causes).collect();
        assert_eq!(services, [ServiceName::new("default", "web")]);
        assert_eq!(gateways, [Arc::<str>::from("team-a")]);
    }
}
