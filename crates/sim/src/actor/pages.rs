//! Lists in pages of one, and others who delete what stands in them: pages go by number, so that
//! what follows moves up, and one of ours stands on neither of two.

use super::Company;
use super::vandal::delete;
use crate::path::bare_path;
use crate::random::Random;
use crate::scene::Outbound;
use crate::scene::objects::{is_theirs, spare};
use crate::stage::{Happening, Stage};
use arm::{Request as Call, Target};
use azure_emulator::Request;
use std::ops::Range;

const BALANCERS: &str = "Microsoft.Network/loadBalancers";
/// Public IPs of another client's, which stand before ours in every list.
const SPARES: Range<u64> = 0..3;
/// From this item of a list on there are ours.
const OURS_FROM: usize = 7;
/// Within so long a list is read anew.
const LOOK_MS: u64 = 170_000;
/// For how long nothing else goes: what a list lacked has been looked for once more by then.
const EACH_MS: u64 = 60_000;
const STEP_MS: u64 = 5;

/// Whether a call is for a page of public IPs on which ours stand.
fn is_far(call: &Call) -> bool {
    let (Target::Path(path) | Target::Url(path)) = &call.target;
    let lists = bare_path(call).to_lowercase().ends_with("/publicipaddresses");
    let token = path.split_once("$skipToken=").map_or("", |(_, rest)| rest);
    let token = token.split('&').next().and_then(|token| token.parse::<usize>().ok());
    lists && token.is_some_and(|at| at >= OURS_FROM)
}

impl Stage {
    /// Whether a page of public IPs on which ours stand is being asked for.
    fn is_paging(&self) -> bool {
        self.queue.values().any(|happening| match happening {
            Happening::AzureArrives(_, _, call, _) => is_far(call),
            _ => false,
        })
    }
}

impl Company {
    /// Another client has public IPs.
    pub(crate) fn hoard(stage: &mut Stage) {
        for body in SPARES.map(spare) {
            let id = body["id"].as_str().unwrap_or("").to_owned();
            let _ = stage.azure.handle(Request::new("PUT", &id).with_body(body), stage.now_ms);
        }
        stage.azure.clear_calls();
    }

    /// They go one after the other, each while a list is being read.
    pub(crate) fn shift_pages(stage: &mut Stage) {
        for body in SPARES.map(spare) {
            let end = stage.now_ms + LOOK_MS;
            while stage.now_ms < end && !stage.is_paging() && stage.breach.is_none() {
                stage.advance(stage.now_ms + STEP_MS);
            }
            let usual_ms = std::mem::take(&mut stage.azure.options_mut().lro_ms);
            delete(stage, body["id"].as_str().unwrap_or(""));
            stage.azure.options_mut().lro_ms = usual_ms;
            stage.advance(stage.now_ms + EACH_MS);
        }
    }

    /// Another client deletes a load balancer of ours or, where Azure does not let them, a public
    /// IP with what stands on it.
    pub(crate) fn rob(&mut self, random: &mut Random, stage: &mut Stage) {
        let all = stage.azure.resources_of(BALANCERS);
        let ids = all.iter().filter_map(|balancer| balancer["id"].as_str());
        let is_ours = |id: &&str| !is_theirs(id.rsplit('/').next().unwrap_or(""));
        let ids: Vec<String> = ids.filter(is_ours).map(str::to_owned).collect();
        let alone = self.scene.outbound == Outbound::None && random.permille(500);
        let balancer = random.choose(&ids).filter(|_| alone).cloned();
        let gone = balancer.is_some_and(|id| matches!(delete(stage, &id).0, 200..300));
        if !gone {
            self.delete_ip(random, stage);
        }
    }
}
