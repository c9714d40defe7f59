//! Azure calls counted by what they are about and what came of them.

use crate::effect::CallId;
use crate::observers::histogram::Histogram;
use arm::Answer;
use arm::error::ErrorKind;
use model::ResourceId;
use model::world::Need;
use std::collections::BTreeMap;

/// Upper bounds of the numbers of Services and addresses in one write that are told apart.
pub const BATCH_BOUNDS: [u64; 12] = [0, 1, 2, 5, 10, 25, 50, 100, 250, 1_000, 5_000, 20_000];

/// What a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceKind {
    /// Load balancers and their pools.
    LoadBalancer,
    /// Public IPs.
    PublicIp,
    /// The security group.
    SecurityGroup,
    /// Subnets.
    Subnet,
    /// Private Link Services and their connections.
    PrivateLinkService,
    /// NAT gateways.
    NatGateway,
    /// Scale sets.
    ScaleSet,
    /// Instances of scale sets.
    ScaleSetVm,
    /// Network interfaces.
    NetworkInterface,
    /// The services of the Service Gateway.
    GatewayServices,
    /// The addresses of the Service Gateway.
    GatewayLocations,
    /// Virtual machines: they are read alone.
    VirtualMachine,
    /// The region's zones: they are read alone.
    Zone,
    /// Anything else.
    Other,
}

impl ResourceKind {
    /// The kinds that are written.
    pub const WRITTEN: [Self; 11] = [
        Self::LoadBalancer,
        Self::PublicIp,
        Self::SecurityGroup,
        Self::Subnet,
        Self::PrivateLinkService,
        Self::NatGateway,
        Self::ScaleSet,
        Self::ScaleSetVm,
        Self::NetworkInterface,
        Self::GatewayServices,
        Self::GatewayLocations,
    ];

    /// The kinds that are read and never written.
    pub const READ_ALONE: [Self; 2] = [Self::VirtualMachine, Self::Zone];

    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LoadBalancer => "load_balancer",
            Self::PublicIp => "public_ip",
            Self::SecurityGroup => "security_group",
            Self::Subnet => "subnet",
            Self::PrivateLinkService => "private_link_service",
            Self::NatGateway => "nat_gateway",
            Self::ScaleSet => "scale_set",
            Self::ScaleSetVm => "scale_set_vm",
            Self::NetworkInterface => "network_interface",
            Self::GatewayServices => "gateway_services",
            Self::GatewayLocations => "gateway_locations",
            Self::VirtualMachine => "virtual_machine",
            Self::Zone => "zone",
            Self::Other => "other",
        }
    }

    /// What a resource is.
    #[must_use]
    pub fn of_id(id: &ResourceId) -> Self {
        let folded = id.folded();
        let mut segments = folded.rsplit('/');
        let (last, kind) = (segments.next().unwrap_or(""), segments.next().unwrap_or(""));
        match (kind, last) {
            ("loadbalancers", _) => Self::LoadBalancer,
            ("publicipaddresses", _) => Self::PublicIp,
            ("networksecuritygroups", _) => Self::SecurityGroup,
            ("subnets", _) => Self::Subnet,
            ("privatelinkservices" | "privateendpointconnections", _) => Self::PrivateLinkService,
            ("natgateways", _) => Self::NatGateway,
            ("virtualmachinescalesets", _) => Self::ScaleSet,
            ("virtualmachines", _) => Self::ScaleSetVm,
            ("networkinterfaces", _) => Self::NetworkInterface,
            (_, "services") => Self::GatewayServices,
            (_, "addresslocations") => Self::GatewayLocations,
            _ => Self::Other,
        }
    }

    /// What a list holds.
    #[must_use]
    pub fn of_need(need: &Need) -> Self {
        match need {
            Need::Balancers => Self::LoadBalancer,
            Need::PublicIps(_) => Self::PublicIp,
            Need::SecurityGroup => Self::SecurityGroup,
            Need::Subnet(_) => Self::Subnet,
            Need::Zones => Self::Zone,
            Need::PrivateLinks(_) => Self::PrivateLinkService,
            Need::ScaleSets => Self::ScaleSet,
            Need::ScaleSetVms(_) => Self::ScaleSetVm,
            Need::NetworkInterfaces => Self::NetworkInterface,
            Need::VirtualMachines => Self::VirtualMachine,
            Need::NatGateways => Self::NatGateway,
            Need::GatewayServices => Self::GatewayServices,
            Need::GatewayLocations => Self::GatewayLocations,
        }
    }
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It was carried out.
    Succeeded,
    /// The resource had changed since it was read.
    Stale,
    /// Azure refused what it asked.
    Refused,
    /// There were too many.
    Throttled,
    /// It failed otherwise.
    Failed,
}

impl Outcome {
    /// What can come of a write.
    pub const OF_WRITES: [Self; 5] =
        [Self::Succeeded, Self::Stale, Self::Refused, Self::Throttled, Self::Failed];
    /// What can come of a read.
    pub const OF_READS: [Self; 3] = [Self::Succeeded, Self::Throttled, Self::Failed];

    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Stale => "stale",
            Self::Refused => "refused",
            Self::Throttled => "throttled",
            Self::Failed => "failed",
        }
    }

    fn of_error(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Stale => Self::Stale,
            ErrorKind::Refused => Self::Refused,
            ErrorKind::Throttled => Self::Throttled,
            ErrorKind::Busy
            | ErrorKind::Locked
            | ErrorKind::Missing
            | ErrorKind::Forbidden
            | ErrorKind::Transient
            | ErrorKind::Unreachable
            | ErrorKind::Ambiguous => Self::Failed,
        }
    }

    /// What came of a read: that something does not exist is an answer.
    fn of_answer(answer: &Answer) -> Self {
        match answer {
            Answer::Reply(reply) => match reply.status {
                200..300 | 404 => Self::Succeeded,
                429 => Self::Throttled,
                _ => Self::Failed,
            },
            Answer::Fault(_) => Self::Failed,
        }
    }
}

type Counts = BTreeMap<(ResourceKind, Outcome), u64>;

/// Calls that have ended, and the size of what was sent.
#[derive(Debug)]
pub struct Tally {
    writes: Counts,
    reads: Counts,
    /// Reads under way.
    reading: BTreeMap<CallId, ResourceKind>,
    services: Histogram,
    addresses: Histogram,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            writes: Counts::new(),
            reads: Counts::new(),
            reading: BTreeMap::new(),
            services: Histogram::new(&BATCH_BOUNDS),
            addresses: Histogram::new(&BATCH_BOUNDS),
        }
    }
}

impl Tally {
    /// Writes of a kind that ended so.
    #[must_use]
    pub fn writes(&self, resource: ResourceKind, outcome: Outcome) -> u64 {
        self.writes.get(&(resource, outcome)).copied().unwrap_or(0)
    }

    /// Reads of a kind that ended so, polls and pages of lists included.
    #[must_use]
    pub fn reads(&self, resource: ResourceKind, outcome: Outcome) -> u64 {
        self.reads.get(&(resource, outcome)).copied().unwrap_or(0)
    }

    /// Numbers of Services on whose account a write was sent.
    #[must_use]
    pub fn services(&self) -> &Histogram {
        &self.services
    }

    /// Numbers of addresses in writes of the Service Gateway's addresses.
    #[must_use]
    pub fn addresses(&self) -> &Histogram {
        &self.addresses
    }

    pub(crate) fn read_sent(&mut self, call: CallId, kind: ResourceKind) {
        self.reading.insert(call, kind);
    }

    pub(crate) fn answered(&mut self, call: CallId, answer: &Answer) {
        if let Some(kind) = self.reading.remove(&call) {
            *self.reads.entry((kind, Outcome::of_answer(answer))).or_default() += 1;
        }
    }

    pub(crate) fn write_sent(&mut self, id: &ResourceId, services: usize, addresses: usize) {
        self.services.add(services as u64);
        if ResourceKind::of_id(id) == ResourceKind::GatewayLocations {
            self.addresses.add(addresses as u64);
        }
    }

    pub(crate) fn write_ended(&mut self, id: &ResourceId, error: Option<ErrorKind>) {
        let outcome = error.map_or(Outcome::Succeeded, Outcome::of_error);
        *self.writes.entry((ResourceKind::of_id(id), outcome)).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_from_ids() {
        let group = "/subscriptions/s/resourceGroups/rg/providers/";
        for (path, kind) in [
            ("Microsoft.Network/loadBalancers/kubernetes", ResourceKind::LoadBalancer),
            ("Microsoft.Network/publicIPAddresses/services", ResourceKind::PublicIp),
            ("Microsoft.Network/virtualNetworks/v/subnets/s", ResourceKind::Subnet),
            ("Microsoft.Compute/virtualMachineScaleSets/v", ResourceKind::ScaleSet),
            (
                "Microsoft.Compute/virtualMachineScaleSets/v/virtualMachines/3",
                ResourceKind::ScaleSetVm,
            ),
            (
                "Microsoft.Network/privateLinkServices/p/privateEndpointConnections/c",
                ResourceKind::PrivateLinkService,
            ),
            ("Microsoft.Network/serviceGateways/g/services", ResourceKind::GatewayServices),
            (
                "Microsoft.Network/serviceGateways/g/addressLocations",
                ResourceKind::GatewayLocations,
            ),
            ("Microsoft.Storage/accounts/a", ResourceKind::Other),
        ] {
            assert_eq!(ResourceKind::of_id(&ResourceId::new(format!("{group}{path}"))), kind);
        }
    }
}
