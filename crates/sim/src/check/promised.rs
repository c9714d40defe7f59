//! L1 by the crate that states what was promised, and knows nothing of the controller.

use super::stripped::close;
use crate::judge;
use crate::scene::CLASS;
use crate::stage::Stage;
use promise::{Broken, Scene};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Stage {
    /// Promises that are not kept, at a moment at which nothing is under way; none of what Services
    /// have left behind that went without our finalizer, because somebody had taken it off by
    /// hand: Kubernetes does not tell of their end who was not there.
    #[must_use]
    pub fn unkept(&self) -> Vec<Broken> {
        let scene = self.promised();
        let mut unkept = promise::judge(&scene);
        // The cloud config of a run says how Services move: once none is on its way nothing is left
        // of the other kind, for which nothing would be promised.
        unkept.extend(promise::left_behind(&scene).map(|id| {
            let text = format!("{id} is of load balancers that Services have left");
            Broken { service: None, promise: "other-layout", text }
        }));
        unkept.retain(|broken| {
            broken.service.as_ref().is_none_or(|service| !self.is_name_stripped(service))
        });
        unkept
    }

    /// Promises to Services that have come since, where nothing else has changed. What stripped
    /// Services have left behind takes up room as everything else does.
    #[must_use]
    pub(crate) fn unkept_to_newcomers(&self, earlier: &[Arc<Value>]) -> Vec<Broken> {
        let resources = self.azure.shown().collect();
        promise::judge_newcomers(&Scene { resources, ..self.promised() }, earlier)
    }

    /// Services that cannot have what they ask for.
    pub(crate) fn refused(&self) -> BTreeSet<String> {
        promise::refused(&self.promised())
    }

    /// The refused Services, and those whose Pods do not say where any of their ports leads.
    pub(crate) fn refused_and_unanswered(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let scene = self.promised();
        (promise::refused(&scene), promise::unanswered(&scene))
    }

    fn promised(&self) -> Scene {
        let (ports, unsure) = (self.forgotten_ports(), self.unsure_addresses());
        let scene = judge::scene(&self.kubernetes, &self.azure, &self.config, &self.before);
        let closed = scene.resources.iter().map(|resource| close(resource, &ports));
        let resources = closed.filter_map(|r| self.without_stripped_parts(&r)).collect();
        // A Basic public IP is in no zone, and stays so when it becomes Standard.
        let zonal = !self.scene.is_basic();
        let zones = if zonal { self.azure.options().zones.clone() } else { Vec::new() };
        Scene {
            zones,
            class: Some(CLASS.to_owned()),
            forgotten: unsure.iter().filter_map(|address| address.parse().ok()).collect(),
            held: self.held_by_stripped(),
            resources,
            ..scene
        }
    }
}
