//! What can be set on an emulated Azure: its size, its speed, its strictness and its quirks.

use serde::{Deserialize, Serialize};

/// Whether a check or a quirk is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// In force.
    On,
    /// Not in force.
    Off,
}

impl Switch {
    pub(crate) fn is_on(self) -> bool {
        self == Switch::On
    }
}

/// What becomes of a write to a resource whose last operation has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It is taken; both operations end by themselves.
    Accept,
    /// 409 `AnotherOperationInProgress`.
    Conflict,
    /// 429 `RetryableErrorDueToAnotherOperation`.
    Throttle,
    /// It is taken, and the operation under way ends as Canceled with the code
    /// `CanceledAndSupersededDueToAnotherOperation`.
    Supersede,
}

/// How an empty list is written in answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Empties {
    /// As the client wrote it.
    AsWritten,
    /// `[]`, also for what was never written.
    List,
    /// `null`.
    Null,
    /// Left out.
    Absent,
}

/// How the two actions of a Service Gateway answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GatewayReply {
    /// 200 with an empty body.
    Done,
    /// 200, with the headers of a long-running operation as the live service sends them.
    DoneWithHeaders,
    /// 202 and a `Location` to poll.
    Accepted,
    /// 204.
    NoContent,
}

/// The settings of one emulated Azure. Each can be changed while it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Where clients reach the server; absolute links in answers start with it.
    pub base_url: String,
    /// The region of resources that name none.
    pub location: String,
    /// The availability zones of the region.
    pub zones: Vec<String>,
    /// Makes ETags and operation ids differ between two emulators.
    pub seed: u64,
    /// How long an operation runs; 0 ends it at once, without the headers of an operation.
    pub lro_ms: u64,
    /// `Retry-After` of an operation under way, in seconds; 0 leaves the header out.
    pub retry_after_s: u64,
    /// Added to each answer.
    pub latency_ms: u64,
    /// How many items a LIST returns at most; 0 is all.
    pub page_size: usize,
    /// How many public IPs a subscription may have.
    pub public_ip_quota: Option<usize>,
    /// The largest request body, in bytes.
    pub max_request_bytes: Option<usize>,
    /// How old a resource must be before a LIST shows it.
    pub list_lag_ms: u64,
    /// Whether the resource groups of seeded resources come into being with them.
    pub auto_groups: Switch,
    /// A write during an operation, other than on a load balancer.
    pub overlap: Overlap,
    /// A write on a load balancer or one of its pools during an operation.
    pub load_balancer_overlap: Overlap,
    /// Token buckets of Resource Manager and of the network provider.
    pub throttle: Switch,
    /// A new public IP shows its address only when its operation has ended.
    pub late_public_ip_address: Switch,
    /// The ETag changes once more when an operation ends.
    pub late_etag: Switch,
    /// Referenced resources must exist.
    pub references: Switch,
    /// Referenced resources must not be Updating or Failed.
    pub referenced_state: Switch,
    /// A load balancer with an IPv6 public frontend needs an IPv4 one.
    pub ipv6_needs_ipv4: Switch,
    /// A public IP keeps the IP tags that it was made with, as where the subscription may not
    /// change them.
    pub ip_tags_for_life: Switch,
    /// A Service Gateway service keeps its load balancer and NAT gateway from being deleted.
    pub gateway_references: Switch,
    /// Addresses in a Service Gateway may only list services that are registered.
    pub gateway_known_services: Switch,
    /// How a Service Gateway's actions answer.
    pub gateway_reply: GatewayReply,
    /// `If-Match` is checked on a Private Link Service.
    pub private_link_etag: Switch,
    /// `If-Match` is checked on the model of a Flexible scale set.
    pub flexible_model_etag: Switch,
    /// How many Private Link Services stand before the frontends of one load balancer.
    pub private_links_of_balancer: Option<usize>,
    /// How many Private Link Services a subscription may have.
    pub private_links_of_subscription: Option<usize>,
    /// What the caller may do, as in a role: patterns with `*`. Calls are held to it; references
    /// in bodies are not.
    pub permissions: Vec<String>,
    /// Requests without `api-version` are refused.
    pub api_version: Switch,
    /// Values left out in a PUT are returned with Azure's defaults.
    pub defaults: Switch,
    /// Pools of NICs also list `loadBalancerBackendAddresses` without an address.
    pub nic_pool_addresses: Switch,
    /// How empty lists are written.
    pub empties: Empties,
    /// Ids in answers are in capital letters.
    pub shout_ids: Switch,
    /// IPv6 addresses in answers are written out in capital letters.
    pub odd_ipv6: Switch,
    /// Answers carry properties and enum values no client knows.
    pub unknown_fields: Switch,
    /// The call log keeps request bodies.
    pub log_bodies: Switch,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            base_url: String::new(),
            location: "eastus".to_owned(),
            zones: ["1", "2", "3"].map(str::to_owned).to_vec(),
            seed: 0,
            lro_ms: 0,
            retry_after_s: 1,
            latency_ms: 0,
            page_size: 0,
            public_ip_quota: None,
            max_request_bytes: None,
            list_lag_ms: 0,
            auto_groups: Switch::On,
            overlap: Overlap::Conflict,
            load_balancer_overlap: Overlap::Supersede,
            throttle: Switch::Off,
            late_public_ip_address: Switch::Off,
            late_etag: Switch::Off,
            references: Switch::On,
            referenced_state: Switch::On,
            ipv6_needs_ipv4: Switch::Off,
            ip_tags_for_life: Switch::Off,
            gateway_references: Switch::On,
            gateway_known_services: Switch::On,
            gateway_reply: GatewayReply::Done,
            private_link_etag: Switch::Off,
            flexible_model_etag: Switch::Off,
            private_links_of_balancer: Some(8),
            private_links_of_subscription: Some(800),
            permissions: vec!["*".to_owned()],
            api_version: Switch::Off,
            defaults: Switch::On,
            nic_pool_addresses: Switch::Off,
            empties: Empties::AsWritten,
            shout_ids: Switch::Off,
            odd_ipv6: Switch::Off,
            unknown_fields: Switch::Off,
            log_bodies: Switch::On,
        }
    }
}
