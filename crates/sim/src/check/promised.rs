//! L1 by the crate that states what was promised, and knows nothing of the controller.

use crate::judge;
use crate::stage::Stage;
use promise::{Broken, Scene};

impl Stage {
    /// Promises that are not kept, at a moment at which nothing is under way.
    #[must_use]
    pub fn unkept(&self) -> Vec<Broken> {
        let forgotten = self.forgotten();
        let scene = judge::scene(&self.kubernetes, &self.azure, &self.config, &self.before);
        promise::judge(&Scene {
            forgotten: forgotten.iter().filter_map(|address| address.parse().ok()).collect(),
            ..scene
        })
    }
}
