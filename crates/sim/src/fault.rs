//! The faults, one name each: for the draw of a seed, for the count of what was met, and for
//! `--without`.

named! {
    /// Something that goes wrong, or somebody who makes it so.
    pub enum Fault;
    /// Every fault.
    pub const FAULTS;
    QuotaWithHeader, "quota-429-with-retry-after", "429 for a quota, with `Retry-After`";
    QuotaWithoutHeader, "quota-429-without-retry-after", "429 for a quota, without `Retry-After`";
    QuotaInBody, "quota-429-seconds-in-body", "429 that says the seconds only in its message";
    LockThrottled, "lock-429", "429 RetryableErrorDueToAnotherOperation: a lock, no quota";
    NotProvisioned, "reference-not-provisioned-429", "429 ReferencedResourceNotProvisioned";
    GatewayThrottled, "gateway-error-429", "429 GatewayError";
    OtherOperation, "other-operation-409", "409 AnotherOperationInProgress";
    ScopeLocked, "scope-locked-409", "409 ScopeLocked: a management lock";
    Precondition, "precondition-412", "412 although no client wrote";
    Refused, "refused-400", "400 with one of the codes of that kind of resource";
    Forbidden, "forbidden-403", "403 AuthorizationFailed";
    GroupMissing, "group-missing-404", "404 ResourceGroupNotFound";
    TokenExpired, "token-expired-401", "401 ExpiredAuthenticationToken";
    TokenEndpointDown, "token-endpoint-down", "no token: nothing is sent";
    ServerError, "server-error-5xx", "500, 502, 503 or 504";
    Preempted, "compute-preempted", "409 OperationPreempted from compute";
    ParentMissing, "compute-parent-missing", "404 ParentResourceNotFound from compute";
    Superseded, "operation-superseded",
        "the operation ends as CanceledAndSupersededDueToAnotherOperation";
    LosesPool, "pool-lost", "all says Succeeded and the pool is empty";
    OperationFails, "operation-fails", "201, then the operation fails and leaves Failed";
    Stuck, "operation-stuck", "an operation that takes minutes";
    ErrorIn200, "error-in-200", "200 with an error in the body";
    AcceptedThenFails, "accepted-then-fails", "202, then the poll says Failed";
    ResetBefore, "reset-before", "the connection breaks before the request has an effect";
    ResetAfter, "reset-after", "the connection breaks after the request took effect";
    Truncated, "answer-truncated", "half of the answer arrives";
    Hang, "no-answer", "no answer ever comes";
    Slow, "slow-answer", "an answer takes seconds";
    StaleList, "list-stale", "a list without what was just made";
    LetterCase, "ids-in-capitals", "ids in capital letters";
    UnknownFields, "unknown-fields", "fields and values that no contract has yet";
    EmptyLists, "empty-null-absent", "`[]`, null and absent for the same thing";
    Pages, "lists-in-pages", "lists in pages of two, by number: a deletion shifts them";
    LateEtag, "etag-changes-late", "the ETag changes once more when an operation ends";
    ListLag, "lists-lag", "every list lags behind";
    ApiThrottled, "api-429", "429 from the API server";
    ApiError, "api-500", "500 from the API server";
    ApiUnavailable, "api-503", "503 from the API server";
    ApiConflict, "api-conflict", "409: another client wrote first";
    ApiAnswerLostApplied, "api-answer-lost-applied", "a write that took effect, its answer lost";
    ApiAnswerLostNotApplied, "api-answer-lost-not-applied", "a write lost on its way";
    ApiDown, "api-down", "the API server is unreachable for minutes";
    WatchLag, "watch-lag", "a watch lags by seconds, kinds out of order against each other";
    WatchExpired, "watch-410", "410 Gone, then a new list";
    WatchBroken, "watch-broken", "a watch breaks; a list takes its place, so deletions are missed";
    WatchDuplicate, "watch-duplicate", "an event twice";
    WatchReplay, "watch-late-event", "an event older than what was seen";
    WatchPartial, "watch-in-parts", "events one by one with time between";
    StaleRelist, "relist-stale", "a list older than what was seen before";
    Bookmark, "watch-bookmark", "a watch that says nothing but that time passed";
    CrashBefore, "crash-before-effect", "the process dies before an effect is carried out";
    CrashAfter, "crash-after-effect", "the process dies after an effect was carried out";
    CrashIdle, "crash-idle", "the process is killed at any time";
    Pause, "pause", "the process stands still for a while, requests included";
    TwoLeaders, "two-leaders", "a second process waits for the lease";
    HandEdits, "hand-edits", "an operator edits or deletes what is ours";
    TheirEdits, "their-edits", "another client adds and changes parts beside ours";
    ConfigChanges, "config-changes", "a restart with another cloud config";
    Poison, "poison", "Azure refuses whatever one Service has part in";
    FinalizerStripped, "finalizer-stripped", "an operator removes a finalizer by hand";
    Vandal, "hand-deletes",
        "an operator deletes what of ours is in use, and edits public IPs and tables";
    Slices, "slices-in-parts",
        "a Service's endpoints in several slices, in two at a time or in none for a while";
    Families, "two-families", "Services of IPv4 and IPv6, that lose one family and get it back";
    Links, "private-links", "Services behind Private Link Services";
    Annotations, "all-annotations",
        "Services with any annotation of the reference, some of them with wrong values";
    Gates, "readiness-gates", "Pods with our readiness gate";
    Classes, "load-balancer-classes",
        "Services of our class, of none and of another controller's, which change hands";
    DriftReport, "drift-report", "`driftPolicy: report` until faults stop";
    ControlPlane, "control-plane-nodes", "nodes of the control plane among the others";
    Selectors, "selectors",
        "several load balancers that choose Services, namespaces and nodes by their labels";
    SharedProbes, "shared-probes",
        "a cloud config with shared probes, every other time answered by agents, and with tags";
    LateAddress, "late-addresses", "a public IP has its address only when its operation has ended";
    GatewayReply, "gateway-replies", "the Service Gateway answers 202, 204, or with an operation";
    Buckets, "throttle-buckets", "Azure's token buckets are on";
    WrongClock, "wrong-clock", "a process starts on a machine whose clock is up to a day off";
    LeaseCalls, "lease-calls",
        "calls on the Lease are late, refused, conflict or lose their answers";
    Hostile, "hostile-tenant",
        "a tenant of one namespace who attacks others, and claims what they have once all is right";
    SecondCluster, "second-cluster",
        "another Ballast cluster in the resource group, with names of our form and its own UID";
    OddNodes, "odd-nodes",
        "nodes of other groups, unmanaged ones, control planes of old, nodes held in deletion";
    CloudConfig, "cloud-config",
        "another cluster name and every other key of the cloud config that says what is built";
    Machines, "stand-alone-machines", "nodes on virtual machines of no scale set";
}

/// Faults that came when there were seeds to keep. A seed of five draws one of them, and only where
/// it drew others, so that all others of a seed stay as they were.
pub const LATER: &[Fault] = &[
    Fault::Vandal,
    Fault::Slices,
    Fault::Families,
    Fault::Links,
    Fault::Annotations,
    Fault::Gates,
    Fault::Classes,
    Fault::DriftReport,
    Fault::ControlPlane,
    Fault::Selectors,
    Fault::SharedProbes,
    Fault::LateAddress,
    Fault::GatewayReply,
    Fault::Buckets,
    Fault::WrongClock,
    Fault::LeaseCalls,
    Fault::Hostile,
    Fault::SecondCluster,
    Fault::OddNodes,
    Fault::CloudConfig,
    Fault::Machines,
];

/// Faults that are there all along where they are drawn.
pub const ALL_ALONG: [Fault; 8] = [
    Fault::TwoLeaders,
    Fault::ControlPlane,
    Fault::Selectors,
    Fault::SharedProbes,
    Fault::WrongClock,
    Fault::SecondCluster,
    Fault::CloudConfig,
    Fault::Machines,
];

impl Fault {
    /// In how many seeds of a thousand it is on.
    #[must_use]
    pub fn chance(self) -> u64 {
        if LATER.contains(&self) { 200 } else { 250 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_fault_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = FAULTS.iter().map(|fault| fault.name()).collect();
        assert_eq!(names.len(), FAULTS.len());
        assert!(FAULTS.ends_with(LATER), "later ones are drawn when it is known what else is on");
        for fault in FAULTS {
            assert_eq!(Fault::parse(fault.name()), Some(*fault));
        }
    }
}
