//! L1 by the crate that states what was promised, and knows nothing of the controller.

use super::stripped::close;
use crate::judge;
use crate::scene::{CLASS, Layout};
use crate::stage::Stage;
use promise::{Broken, Scene};

impl Stage {
    /// Promises that are not kept, at a moment at which nothing is under way; none of what Services
    /// have left behind that went without our finalizer, because somebody had taken it off by
    /// hand: Kubernetes does not tell of their end who was not there.
    #[must_use]
    pub fn unkept(&self) -> Vec<Broken> {
        let (ports, unsure) = (self.forgotten_ports(), self.unsure_addresses());
        let scene = judge::scene(&self.kubernetes, &self.azure, &self.config, &self.before);
        let closed = scene.resources.iter().map(|resource| close(resource, &ports));
        let resources = closed.filter_map(|r| self.without_stripped_parts(&r)).collect();
        // A Basic public IP is in no zone, and stays so when it becomes Standard.
        let zonal = self.scene.layout != Layout::PerSet;
        let zones = if zonal { self.azure.options().zones.clone() } else { Vec::new() };
        let mut unkept = promise::judge(&Scene {
            zones,
            class: Some(CLASS.to_owned()),
            forgotten: unsure.iter().filter_map(|address| address.parse().ok()).collect(),
            held: self.held_by_stripped(),
            resources,
            ..scene
        });
        unkept.retain(|broken| {
            broken.service.as_ref().is_none_or(|service| !self.is_name_stripped(service))
        });
        unkept
    }
}
