//! A node is to go for a while, where each Service is probed or all share a probe: an operator
//! drains it for planned work, which kube-proxy does not know of, or the cluster autoscaler or
//! Karpenter is about to delete it, which kube-proxy tells a shared probe (docs/draining.md).

use super::Play;
use super::keys::PROBES;
use crate::actor::node::Sender;
use crate::scene::Layout;
use crate::tally::count;
use serde_json::{Value, json};

/// In how many of a thousand seeds that it suits all Services share a probe meanwhile.
const SHARED: u64 = 850;
/// Who drains the node, drawn with equal chances.
const SENDERS: [Sender; 5] =
    [Sender::Operator, Sender::Operator, Sender::Operator, Sender::Autoscaler, Sender::Karpenter];

impl Play {
    /// L1: it takes no new connections once it has drained, or leaves its pools. S3: where
    /// kube-proxy turns new connections away it stays in its pools for those that it has.
    pub(super) fn be_worked_on(&mut self) {
        let layout = self.stage.scene.layout;
        if self.stage.breach.is_some() || layout == Layout::Containers {
            return;
        }
        let mut random = self.late.fork("planned work");
        // Of load balancers for each set most are Basic, and none is drawn with a shared probe.
        let suits = layout != Layout::PerSet && self.stage.config.written[PROBES].is_null();
        let shared = random.permille(SHARED) && suits;
        if shared {
            self.set_key(PROBES, &json!("shared"));
        }
        self.company.bring_workers(&mut self.stage);
        self.stage.ledger.inputs += 1;
        self.come_right();
        let by = *random.pick(&SENDERS);
        let Some((index, machine)) = self.company.choose_worker(&mut random) else { return };
        let before = self.stage.pools_of(&machine);
        let stays = by == Sender::Autoscaler && self.stage.is_turned_away(&machine);
        self.send_worker(index, by, true);
        count(&mut self.stage.tally.checks, "S3");
        if stays && self.stage.pools_of(&machine) != before {
            let text = format!("{machine} left a pool, and kube-proxy turns connections away");
            self.stage.fail("S3", text);
        }
        self.send_worker(index, by, false);
        if shared && self.stage.breach.is_none() {
            self.set_key(PROBES, &Value::Null);
            self.come_right();
        }
    }

    /// The node is to go, or is not any more.
    fn send_worker(&mut self, index: u32, by: Sender, goes: bool) {
        if self.stage.breach.is_none() {
            self.stage.ledger.inputs += 1;
            self.company.send_worker(index, by, goes, &mut self.stage);
            self.come_right();
        }
    }
}
