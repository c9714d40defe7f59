//! How long nodes have drained. Planning says what drains; the time is counted here, from
//! when this process first heard so: a controller that was down gives them their full time again.

use crate::controller::Controller;
use model::policy::NodeDrain;

impl Controller {
    /// Takes in what the plan that was just made says about draining.
    pub(crate) fn follow_drains(&mut self, now_ms: u64) {
        let Some(draining) = &self.planning.report.draining else { return };
        self.kubernetes.drains.retain(|drainer, _| draining.contains(drainer));
        self.world.drained.retain(|drainer| draining.contains(drainer));
        for drainer in draining {
            self.kubernetes.drains.entry(drainer.clone()).or_insert(now_ms);
        }
    }

    /// What has drained for the time allowed may be taken out.
    pub(crate) fn pass_drains(&mut self, now_ms: u64) {
        if self.wake_drains_ms().is_none_or(|at| at > now_ms) {
            return;
        }
        let allowed_ms = self.drain_ms();
        let over =
            self.kubernetes.drains.iter().filter(|(_, since)| **since + allowed_ms <= now_ms);
        self.world.drained.extend(over.map(|(drainer, _)| drainer.clone()));
        self.planning.dirty = true;
    }

    /// When the next one has drained for long enough.
    pub(crate) fn wake_drains_ms(&self) -> Option<u64> {
        let allowed_ms = self.drain_ms();
        let under = self.kubernetes.drains.iter().filter(|(a, _)| !self.world.drained.contains(*a));
        under.map(|(_, since)| since + allowed_ms).min()
    }

    fn drain_ms(&self) -> u64 {
        match self.policy.node_drain {
            NodeDrain::Off => 0,
            NodeDrain::For { seconds } => u64::from(seconds) * 1_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::controller::Controller;
    use crate::options::Options;
    use model::drain::Drainer;
    use model::policy::{NodeDrain, Policy};
    use std::collections::BTreeSet;
    use std::net::IpAddr;

    const FIRST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 224, 0, 4));
    const SECOND: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 224, 0, 5));

    fn policy() -> Policy {
        let text = r#"{"tenantId": "t", "subscriptionId": "s", "resourceGroup": "rg",
            "location": "eastus", "vnetName": "v", "subnetName": "n", "securityGroupName": "g",
            "nodeDrainSeconds": 30, "useManagedIdentityExtension": true}"#;
        let environment = Default::default();
        let sources =
            observe::config::Sources { text, cluster: "kubernetes", environment: &environment };
        observe::config::read(&sources).expect("a whole config").policy
    }

    fn heard(controller: &mut Controller, draining: Option<&[IpAddr]>, now_ms: u64) {
        controller.planning.report.draining =
            draining.map(|all| all.iter().copied().map(Drainer::from).collect());
        controller.follow_drains(now_ms);
        controller.planning.dirty = false;
        controller.pass_drains(now_ms);
    }

    #[test]
    fn each_address_has_its_own_time() {
        let policy = policy();
        assert_eq!(policy.node_drain, NodeDrain::For { seconds: 30 });
        let mut controller = Controller::new(policy, Options::default());
        let controller = &mut controller;
        let over = |controller: &Controller| -> Vec<Drainer> {
            controller.world.drained.iter().cloned().collect()
        };
        heard(controller, Some(&[FIRST]), 1_000);
        heard(controller, Some(&[FIRST, SECOND]), 11_000);
        assert_eq!(controller.wake_drains_ms(), Some(31_000));
        assert_eq!(controller.next_wake_ms(), Some(31_000));
        // Pools that cannot be looked at say nothing.
        heard(controller, None, 30_999);
        assert_eq!((over(controller), controller.planning.dirty), (vec![], false));
        heard(controller, Some(&[FIRST, SECOND]), 31_000);
        assert_eq!((over(controller), controller.planning.dirty), (vec![FIRST.into()], true));
        assert_eq!(controller.wake_drains_ms(), Some(41_000));
        // The first is taken out: when it comes and goes again, it has its full time again.
        heard(controller, Some(&[SECOND]), 32_000);
        assert_eq!(controller.world.drained, BTreeSet::new());
        heard(controller, Some(&[FIRST, SECOND]), 41_000);
        assert_eq!(over(controller), [Drainer::from(SECOND)]);
        assert_eq!(controller.wake_drains_ms(), Some(71_000));
    }
}
