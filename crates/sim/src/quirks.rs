//! What is uneven for a whole run.

use crate::fault::{ALL_ALONG, Fault};
use crate::scene::Layout;
use crate::stage::Stage;
use crate::swarm::Swarm;
use crate::tally::count;
use azure_emulator::{Empties, GatewayReply, Switch};

fn remainder(moves: u64) -> usize {
    usize::try_from(moves % 4).unwrap_or(0)
}

/// Makes a stage uneven as a swarm says.
pub(crate) fn apply(stage: &mut Stage, swarm: &Swarm) {
    let mut met = Vec::new();
    let mut on = |fault: Fault| {
        let has = swarm.has(fault);
        if has {
            met.push(fault);
        }
        has
    };
    let options = stage.azure.options_mut();
    if on(Fault::LetterCase) {
        options.shout_ids = Switch::On;
        options.odd_ipv6 = Switch::On;
    }
    if on(Fault::UnknownFields) {
        options.unknown_fields = Switch::On;
    }
    if on(Fault::EmptyLists) {
        options.empties = match swarm.moves % 3 {
            0 => Empties::List,
            1 => Empties::Null,
            _ => Empties::Absent,
        };
    }
    if on(Fault::Pages) {
        options.page_size = 2;
    }
    if on(Fault::LateEtag) && options.lro_ms > 0 {
        options.late_etag = Switch::On;
    }
    if on(Fault::ListLag) {
        options.list_lag_ms = 4_000;
    }
    if on(Fault::LateAddress) && options.lro_ms > 0 {
        options.late_public_ip_address = Switch::On;
    }
    if swarm.scene.layout == Layout::Containers && on(Fault::GatewayReply) {
        options.gateway_reply = match swarm.moves % 3 {
            0 => GatewayReply::Accepted,
            1 => GatewayReply::NoContent,
            _ => GatewayReply::DoneWithHeaders,
        };
    }
    if on(Fault::Buckets) {
        options.throttle = Switch::On;
    }
    if !swarm.is_calm() {
        // How long Azure wants to be left alone between two polls.
        options.retry_after_s = *[1, 0, 4, 12].get(remainder(swarm.moves)).unwrap_or(&1);
    }
    for fault in ALL_ALONG {
        on(fault);
    }
    for fault in met {
        count(&mut stage.tally.faults, fault.name());
    }
}
