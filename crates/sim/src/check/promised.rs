//! L1 by the crate that states what was promised, and knows nothing of the controller.

use crate::judge;
use crate::scene::CLASS;
use crate::stage::Stage;
use promise::{Broken, Scene};

/// Promises about what Services have left behind.
const LEFT: [&str; 3] = ["nothing-else", "security", "tags"];

impl Stage {
    /// The same without what Services have left behind that went without our finalizer, because
    /// somebody had taken it off by hand: Kubernetes does not tell of their end who was not there.
    #[must_use]
    pub fn unkept_but_of_stripped(&self) -> Vec<Broken> {
        let mut unkept = self.unkept();
        if self.has_stripped() {
            unkept.retain(|broken| match &broken.service {
                Some(service) => !self.is_name_stripped(service),
                None => !LEFT.contains(&broken.promise),
            });
        }
        unkept
    }

    /// Promises that are not kept, at a moment at which nothing is under way.
    #[must_use]
    pub fn unkept(&self) -> Vec<Broken> {
        let forgotten = self.forgotten();
        let scene = judge::scene(&self.kubernetes, &self.azure, &self.config, &self.before);
        promise::judge(&Scene {
            class: Some(CLASS.to_owned()),
            forgotten: forgotten.iter().filter_map(|address| address.parse().ok()).collect(),
            ..scene
        })
    }
}
