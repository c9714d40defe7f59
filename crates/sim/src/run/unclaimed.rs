//! The API server takes no finalizer of ours for a Pod that leaves through an egress gateway, and
//! the kubelet goes on writing of the Pod.

use super::Play;
use crate::scene::Layout;

/// In how many seeds of a thousand with container load balancers.
const UNCLAIMED: u64 = 700;
/// How far apart the kubelet writes, in milliseconds, and how often: the finalizer is refused then.
const APART_MS: (u64, u64) = (15_000, 30_000);
const WRITES: usize = 4;

impl Play {
    /// S3: the Pod is published without finalizer, because its way out matters more than how
    /// orderly it leaves (docs/operating.md), and stays so whatever is written of it.
    /// L1: the Pod has the finalizer once the API server takes it, and loses it with the others.
    pub(super) fn be_unclaimed(&mut self) {
        let mut random = self.late.fork("Pods without finalizer");
        let on = random.permille(UNCLAIMED) && self.stage.scene.layout == Layout::Containers;
        if self.stage.breach.is_some() || !on {
            return;
        }
        self.stage.ledger.inputs += 1;
        self.company.bring_leaving(&mut self.stage);
        self.heal();
        self.judge_end();
        self.stage.ledger.inputs += 1;
        self.company.bring_unclaimed(&mut self.stage);
        for write in 0..WRITES {
            let apart_ms = random.between(APART_MS.0, APART_MS.1);
            self.stage.advance(self.stage.now_ms + apart_ms);
            self.stage.ledger.inputs += 1;
            self.company.flip_unclaimed(write % 2 == 1, &mut self.stage);
        }
        self.heal();
        self.judge_end();
        self.stage.ledger.inputs += 1;
        self.company.dismiss_leaving(&mut self.stage);
        self.heal();
        self.judge_end();
    }
}
