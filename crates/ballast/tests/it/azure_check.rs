//! `ballast azure-check` on the emulated Azure: as it is, and made to differ.

use crate::support::{Process, http, run};
use arm::{Answer, Method, Request, Target};
use azure_check::{
    ASSUMPTIONS, Assumption, Checked, Client, Exchange, Part, Recording, Site, Subscription, check,
    compare, find, read, write,
};
use azure_emulator::{Options, Switch};
use ballast::emulated::Emulated;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

fn site() -> Site {
    Site {
        subscription: "00000000-0000-0000-0000-000000000001".to_owned(),
        group: "rg".to_owned(),
        location: "eastus".to_owned(),
        run: "0123abcd".to_owned(),
    }
}

/// The names of `ballast azure-role` and what the run itself needs, and no `*`.
fn permissions() -> Vec<String> {
    let all = arm::permission::Purpose::ALL.into();
    let role = arm::permission::permissions(&all).into_iter().map(str::to_owned);
    let network = ["virtualNetworks", "networkSecurityGroups", "networkInterfaces"];
    let own = network.iter().flat_map(|kind| {
        ["write", "delete"].map(|verb| format!("Microsoft.Network/{kind}/{verb}"))
    });
    let more = [
        "Microsoft.Network/virtualNetworks/read",
        "Microsoft.Network/serviceGateways/read",
        "Microsoft.Network/serviceGateways/write",
        "Microsoft.Network/serviceGateways/delete",
        "Microsoft.Network/loadBalancers/backendAddressPools/read",
        "Microsoft.Network/loadBalancers/backendAddressPools/write",
        "Microsoft.Compute/virtualMachineScaleSets/delete",
        "Microsoft.Insights/metrics/read",
    ];
    role.chain(own).chain(more.map(str::to_owned)).collect()
}

fn options() -> Options {
    Options {
        lro_ms: 1_500,
        api_version: Switch::On,
        ip_tags_for_life: Switch::On,
        throttle: Switch::On,
        permissions: permissions(),
        ..Options::default()
    }
}

fn all() -> Vec<&'static Assumption> {
    ASSUMPTIONS.iter().collect()
}

/// The ids of a verdict.
fn with(checked: &Checked, verdict: &str) -> Vec<&'static str> {
    let lines = checked.report.assumptions.iter();
    lines.filter(|line| line.verdict == verdict).map(|line| line.id).collect()
}

/// What no run on the emulator can try, or on any Azure.
const NOT_TRIED: [&str; 6] = [
    "refused-not-json",
    "private-link-services-of-subscription",
    "succeeded-beside-operation",
    "polls-count",
    "admin-state-of-nic",
    "udp-flow",
];

#[test]
fn the_emulator_behaves_as_assumed() {
    let mut azure = Emulated::new(&site(), options());
    let checked = check(&mut azure, &site(), &all());
    let report = &checked.report;
    let told = |verdict: &str| -> Vec<String> {
        let lines = report.assumptions.iter().filter(|line| line.verdict == verdict);
        lines.map(|line| format!("{}: {}", line.id, line.why.as_deref().unwrap_or(""))).collect()
    };
    assert_eq!(told("differs"), [""; 0]);
    assert_eq!(with(&checked, "not tried"), NOT_TRIED, "{:#?}", told("not tried"));
    assert_eq!(report.assumptions.len(), ASSUMPTIONS.len());
    assert!(report.left.is_empty() && !report.interrupted);
    // Whatever is confirmed shows the calls that confirm it.
    let silent =
        report.assumptions.iter().filter(|l| l.verdict == "confirmed" && l.seen.is_empty());
    assert_eq!(silent.map(|line| line.id).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(azure.azure().resources(), Vec::<Value>::new(), "everything made is deleted");
}

#[test]
fn the_same_run_makes_the_same_calls() {
    let once = || check(&mut Emulated::new(&site(), options()), &site(), &all()).exchanges;
    assert_eq!(once(), once());
}

/// An Azure that is otherwise: requests and answers are altered on the way.
struct Altered<A> {
    azure: Emulated,
    alter: A,
    stopped: bool,
}

trait Alter {
    /// Before it is sent; an answer is given in place of Azure's.
    fn request(&mut self, _request: &mut Request) -> Option<(u16, Value)> {
        None
    }
    /// What came back.
    fn answer(&mut self, _request: &Request, _reply: &mut arm::Reply) {}
}

impl<A: Alter> Client for Altered<A> {
    fn send(&mut self, request: &Request) -> Answer {
        let mut altered = request.clone();
        if let Some((status, body)) = self.alter.request(&mut altered) {
            let body = Some(body.into());
            let reply = arm::Reply { status, body, ..arm::Reply::default() };
            return Answer::Reply(Box::new(reply));
        }
        let mut answer = self.azure.send(&altered);
        if let Answer::Reply(reply) = &mut answer {
            self.alter.answer(request, reply);
        }
        answer
    }

    fn wait(&mut self, ms: u64) {
        self.azure.wait(ms);
    }

    fn now_ms(&self) -> u64 {
        self.azure.now_ms()
    }

    fn is_stopped(&self) -> bool {
        self.stopped
    }
}

/// By two functions.
struct By<R, S>(R, S);

impl<R, S> Alter for By<R, S>
where
    R: FnMut(&mut Request) -> Option<(u16, Value)>,
    S: FnMut(&Request, &mut arm::Reply),
{
    fn request(&mut self, request: &mut Request) -> Option<(u16, Value)> {
        (self.0)(request)
    }
    fn answer(&mut self, request: &Request, reply: &mut arm::Reply) {
        (self.1)(request, reply);
    }
}

/// An Azure whose requests alone are altered.
fn altered(
    options: Options,
    request: impl FnMut(&mut Request) -> Option<(u16, Value)>,
) -> Altered<impl Alter> {
    let azure = Emulated::new(&site(), options);
    let alter = By(request, |_: &Request, _: &mut arm::Reply| {});
    Altered { azure, alter, stopped: false }
}

fn path(request: &Request) -> &str {
    let (Target::Path(path) | Target::Url(path)) = &request.target;
    path
}

fn is(request: &Request, method: Method, part: &str) -> bool {
    let bare = path(request).split('?').next().unwrap();
    let mut segments = bare.rsplit('/');
    request.method == method && (segments.nth(1) == Some(part) || bare.ends_with(part))
}

/// What differs where the emulator has other settings.
fn with_options(change: impl FnOnce(&mut Options)) -> Vec<&'static str> {
    let mut options = options();
    change(&mut options);
    let checked = check(&mut Emulated::new(&site(), options), &site(), &all());
    assert!(checked.report.left.is_empty(), "{:?}", checked.report.left);
    with(&checked, "differs")
}

/// What differs where only requests are altered.
fn with_requests(request: impl FnMut(&mut Request) -> Option<(u16, Value)>) -> Vec<&'static str> {
    with_alteration(request, |_, _| {})
}

/// The same where only answers are.
fn with_answers(answer: impl FnMut(&Request, &mut arm::Reply)) -> Vec<&'static str> {
    with_alteration(|_| None, answer)
}

/// What differs where requests and answers are altered; nothing is left over in any case.
fn with_alteration(
    request: impl FnMut(&mut Request) -> Option<(u16, Value)>,
    answer: impl FnMut(&Request, &mut arm::Reply),
) -> Vec<&'static str> {
    let azure = Emulated::new(&site(), options());
    let mut altered = Altered { azure, alter: By(request, answer), stopped: false };
    let checked = check(&mut altered, &site(), &all());
    assert!(checked.report.left.is_empty(), "{:?}", checked.report.left);
    with(&checked, "differs")
}

#[test]
fn settings_that_azure_may_have_otherwise_are_found() {
    let found = with_options(|o| o.private_link_etag = Switch::On);
    assert_eq!(found, ["no-if-match-private-link-service"]);
    let found = with_options(|o| o.flexible_model_etag = Switch::On);
    assert_eq!(found, ["no-if-match-flexible-scale-set"]);
    let found = with_options(|o| o.private_links_of_balancer = Some(4));
    assert_eq!(found, ["private-link-services-of-load-balancer"]);
    let found = with_options(|o| o.private_links_of_balancer = None);
    assert_eq!(found, ["private-link-services-of-load-balancer"]);
    assert_eq!(with_options(|o| o.list_lag_ms = 30_000), ["list-lag"]);
    assert_eq!(with_options(|o| o.api_version = Switch::Off), ["api-version-missing"]);
    let found = with_options(|o| o.ip_tags_for_life = Switch::Off);
    assert_eq!(found, ["refused-other-ip-tags"]);
    // Without throttling, the emulator shows far more than a bucket holds, and Compute nothing.
    let found = with_options(|o| o.throttle = Switch::Off);
    assert_eq!(found, ["buckets-of-subscription", "remaining-of-compute"]);
    let found = with_options(|o| o.max_request_bytes = Some(500_000));
    assert_eq!(found, ["addresses-per-call"]);
    let found = with_options(|o| o.max_request_bytes = Some(8_000));
    assert_eq!(found, ["services-per-call", "addresses-per-call"]);
    let less = "Microsoft.Network/publicIPPrefixes/join/action";
    let found = with_options(|o| o.permissions.retain(|name| name != less));
    assert_eq!(found, ["role-permissions"]);
}

#[test]
fn an_operation_that_is_given_up_is_found_and_its_resource_named() {
    let slow = Options { lro_ms: 4_000_000, ..options() };
    let chosen = ["list-lag", "operation-time"].map(|id| find(id).unwrap());
    let checked = check(&mut Emulated::new(&site(), slow), &site(), &chosen);
    assert_eq!(with(&checked, "differs"), ["operation-time"]);
    assert_eq!(with(&checked, "not tried"), ["list-lag"]);
    let left = &checked.report.left;
    assert!(left.len() == 1 && left[0].id.ends_with("-listed-ip"), "{left:?}");
}

/// A PUT or DELETE of a kind loses its condition on the way: Azure does not check it.
fn unconditional(kind: &'static str, method: Method) -> Vec<&'static str> {
    with_requests(|request| {
        if is(request, method, kind) {
            request.condition = arm::Condition::None;
        }
        None
    })
}

#[test]
fn etags_that_are_not_checked_are_found() {
    let found = unconditional("publicIPAddresses", Method::Put);
    assert_eq!(found, ["if-match-public-ip", "if-none-match-public-ip"]);
    let found = unconditional("loadBalancers", Method::Put);
    assert_eq!(found, ["if-match-load-balancer", "if-none-match-load-balancer"]);
    assert_eq!(unconditional("subnets", Method::Put), ["if-match-subnet"]);
    let found = unconditional("natGateways", Method::Put);
    assert_eq!(found, ["if-match-nat-gateway", "if-none-match-nat-gateway"]);
    let found = unconditional("privateLinkServices", Method::Put);
    assert_eq!(found, ["if-none-match-private-link-service"]);
    let found = unconditional("loadBalancers", Method::Delete);
    assert_eq!(found, ["if-match-delete-load-balancer"]);
}

fn body(request: &mut Request) -> Option<&mut Value> {
    request.body.as_mut().and_then(arm::Body::tree_mut)
}

#[test]
fn null_that_does_not_clear_is_found() {
    // As an Azure that takes null for absent.
    let found = with_requests(|request| {
        if is(request, Method::Put, "natGateways")
            && let Some(inside) = body(request).and_then(|b| b["properties"].as_object_mut())
        {
            inside.retain(|_, value| !value.is_null());
        }
        None
    });
    assert_eq!(found, ["null-clears-service-gateway"]);
    let found = with_requests(|request| {
        if is(request, Method::Post, "updateServices")
            && let Some(all) = body(request).and_then(|b| b["serviceRequests"].as_array_mut())
        {
            for service in all.iter_mut().filter(|one| one["isDelete"] == false) {
                let inside = service["service"]["properties"].as_object_mut().unwrap();
                inside.retain(|_, value| !value.is_null());
            }
        }
        None
    });
    assert_eq!(found, ["null-clears-registration"]);
    // As an Azure where what is left out is cleared.
    let found = with_requests(|request| {
        if is(request, Method::Put, "natGateways")
            && let Some(inside) = body(request).and_then(|b| b["properties"].as_object_mut())
            && !inside.contains_key("serviceGateway")
        {
            inside.insert("serviceGateway".to_owned(), Value::Null);
        }
        None
    });
    assert_eq!(found, ["absent-keeps-service-gateway"]);
}

fn refusal(status: u16, code: &str) -> Option<(u16, Value)> {
    Some((status, json!({"error": {"code": code, "message": "Altered."}})))
}

fn refused_where(refused: bool, status: u16, code: &str) -> Option<(u16, Value)> {
    refusal(status, code).filter(|_| refused)
}

#[test]
fn bodies_that_azure_does_not_take_back_are_found() {
    for (kind, id) in [("networkInterfaces", "echo-nic"), ("subnets", "echo-subnet")] {
        let found = with_requests(|request| {
            let echoed = request.method == Method::Put
                && is(request, Method::Put, kind)
                && request.condition == arm::Condition::None
                && body(request).is_some_and(|b| !b["etag"].is_null());
            refused_where(echoed, 400, "InvalidRequestFormat")
        });
        assert_eq!(found, [id]);
    }
}

#[test]
fn other_versions_skus_and_rules_are_found() {
    let old = |request: &mut Request, version: &str| {
        let (Target::Path(path) | Target::Url(path)) = &request.target;
        path.contains(version)
    };
    let found = with_requests(|request| {
        refused_where(old(request, "2025-09-01"), 400, "NoRegisteredProviderFound")
    });
    assert_eq!(found, ["api-version-service-load-balancer", "sku-service-load-balancer"]);
    let found = with_requests(|request| {
        let v2 = is(request, Method::Put, "natGateways")
            && body(request).is_some_and(|b| b["sku"]["name"] == "StandardV2");
        refused_where(v2, 400, "InvalidSku")
    });
    assert_eq!(found, ["sku-standardv2-nat-gateway"]);
    let found = with_requests(|request| {
        let all = is(request, Method::Put, "loadBalancers") && path(request).contains("-all-lb");
        refused_where(all, 400, "LoadBalancingRuleProtocolAllRequiresPortZero")
    });
    assert_eq!(found, ["protocol-all-with-port-on-internal"]);
    let found = with_requests(|request| {
        let absent = request.method == Method::Delete && path(request).contains("never-made");
        refused_where(absent, 404, "ResourceNotFound")
    });
    assert_eq!(found, ["delete-absent"]);
}

#[test]
fn another_metric_of_health_probes_is_found() {
    let is_metric = |request: &Request| is(request, Method::Get, "Microsoft.Insights/metrics");
    let found = with_requests(|request| refused_where(is_metric(request), 400, "BadRequest"));
    assert_eq!(found, ["health-probe-metric"]);
    let found = with_requests(|request| is_metric(request).then(|| (200, json!({"value": []}))));
    // The answer in Azure's place says nothing of the calls that are left.
    let others = ["health-probe-metric", "health-probe-metric-dimensions"];
    assert_eq!(found, [&others[..], &["remaining-of-subscription"]].concat());
    let found =
        with_requests(|request| refused_where(is_metric(request), 403, "AuthorizationFailed"));
    assert_eq!(found, [""; 0], "without the right it is not tried");
}

#[test]
fn other_headers_are_found() {
    let found = with_answers(|request, reply| {
        if request.method == Method::Put && reply.async_operation.is_some() {
            reply.location = reply.async_operation.take();
        }
    });
    assert_eq!(found, ["operation-of-put"]);
    let found = with_answers(|request, reply| {
        if request.method == Method::Delete {
            reply.location = None;
        }
    });
    assert_eq!(found, ["operation-of-delete"]);
    let found = with_answers(|_, reply| {
        reply.remaining.retain(|(name, _)| !name.contains("subscription-reads"));
    });
    assert_eq!(found, ["remaining-of-subscription"]);
    let found = with_answers(|_, reply| {
        for (name, left) in &mut reply.remaining {
            *left *= if name.contains("subscription-writes") { 6 } else { 1 };
        }
    });
    assert_eq!(found, ["buckets-of-subscription"]);
    // A PUT that says Succeeded while its operation runs.
    let found = with_answers(|request, reply| {
        let own = is(request, Method::Put, "networkSecurityGroups")
            || is(request, Method::Put, "virtualNetworks");
        if own
            && let Some(body) = reply.body.as_mut().map(Arc::make_mut)
            && !body["properties"].is_null()
        {
            body["properties"]["provisioningState"] = json!("Succeeded");
        }
    });
    assert_eq!(found, ["succeeded-beside-operation"]);
}

#[test]
fn each_refusal_that_azure_does_not_give_is_found() {
    for id in ASSUMPTIONS.iter().map(|a| a.id).filter(|id| id.starts_with("refused-")) {
        if NOT_TRIED.contains(&id) {
            continue;
        }
        let chosen = [find(id).unwrap()];
        for (status, code) in [(400, "SomethingElse"), (200, "")] {
            let request = move |request: &mut Request| {
                let refused = request.method == Method::Put && {
                    let at = path(request);
                    let tried =
                        at.contains("-refused-") || at.contains("-aaaa") || at.contains("-ends-");
                    tried
                        || (at.contains("-ip?")
                            && body(request).is_some_and(|b| !b["etag"].is_null()))
                };
                let answer = (status, json!({"error": {"code": code, "message": ""}}));
                refused.then_some(answer)
            };
            let mut altered = altered(options(), request);
            let checked = check(&mut altered, &site(), &chosen);
            assert_eq!(with(&checked, "differs"), [id], "{status} {code}");
        }
    }
}

#[test]
fn names_of_permissions_are_read_from_azures_refusal() {
    let id = "permissions-below-service-gateway";
    let chosen = [find(id).unwrap()];
    let verdict = |options: Options, name: Option<&'static str>| {
        let request = move |request: &mut Request| {
            let denied = name.filter(|_| path(request).contains("/updateServices"))?;
            let message = format!(
                "The client 'x' does not have authorization to perform action '{denied}' over scope"
            );
            Some((403, json!({"error": {"code": "AuthorizationFailed", "message": message}})))
        };
        let mut azure = altered(options, request);
        let report = check(&mut azure, &site(), &chosen).report;
        let line = &report.assumptions[0];
        (line.verdict, line.why.clone().unwrap_or_default())
    };
    let right = "Microsoft.Network/serviceGateways/updateServices/action";
    assert_eq!(verdict(options(), Some(right)).0, "confirmed");
    let (verdict_of, why) =
        verdict(options(), Some("Microsoft.Network/serviceGateways/services/write"));
    assert_eq!(verdict_of, "differs");
    assert!(why.contains("is called Microsoft.Network/serviceGateways/services/write"), "{why}");
    // A credential that may do everything shows nothing of names.
    let every = Options { permissions: vec!["*".to_owned()], ..options() };
    let (verdict_of, why) = verdict(every, None);
    assert_eq!(verdict_of, "not tried");
    assert!(why.contains("is covered by \"*\""), "{why}");
}

#[test]
fn what_is_refused_for_another_reason_is_not_tried() {
    // A subscription that may not have Service Gateways, and a policy against public IPs.
    let request = |request: &mut Request| {
        if is(request, Method::Put, "serviceGateways") {
            return refusal(400, "SubscriptionNotRegisteredForFeature");
        }
        let public = is(request, Method::Put, "publicIPAddresses");
        refused_where(public, 403, "RequestDisallowedByPolicy")
    };
    let checked = check(&mut altered(options(), request), &site(), &all());
    assert_eq!(with(&checked, "differs"), [""; 0]);
    let not_tried = with(&checked, "not tried");
    for id in ["if-match-public-ip", "null-clears-registration", "list-lag", "refused-no-sku"] {
        assert!(not_tried.contains(&id), "{id}");
    }
    let confirmed = with(&checked, "confirmed");
    for id in ["if-match-load-balancer", "echo-nic", "refused-host-bits"] {
        assert!(confirmed.contains(&id), "{id}");
    }
}

/// A client that is stopped from the request on of which this is true.
struct Stopping<F> {
    azure: Emulated,
    stops: F,
    stopped: bool,
}

impl<F: FnMut(&Request) -> bool> Stopping<F> {
    fn new(stops: F) -> Self {
        Self { azure: Emulated::new(&site(), options()), stops, stopped: false }
    }
}

impl<F: FnMut(&Request) -> bool> Client for Stopping<F> {
    fn send(&mut self, request: &Request) -> Answer {
        self.stopped |= (self.stops)(request);
        self.azure.send(request)
    }
    fn wait(&mut self, ms: u64) {
        self.azure.wait(ms);
    }
    fn now_ms(&self) -> u64 {
        self.azure.now_ms()
    }
    fn is_stopped(&self) -> bool {
        self.stopped
    }
}

#[test]
fn an_interrupted_run_deletes_what_it_made() {
    let whole = check(&mut Emulated::new(&site(), options()), &site(), &all()).exchanges.len();
    for at in (0..whole).step_by(23) {
        let mut left = at;
        let mut azure = Stopping::new(|_| {
            left = left.saturating_sub(1);
            left == 0
        });
        azure.stopped = at == 0;
        let checked = check(&mut azure, &site(), &all());
        assert!(checked.report.left.is_empty(), "{at}: {:?}", checked.report.left);
        assert_eq!(azure.azure.azure().resources(), Vec::<Value>::new(), "stopped after {at}");
        assert_eq!(with(&checked, "differs"), [""; 0], "stopped after {at}");
    }
}

#[test]
fn a_nat_gateway_that_is_registered_and_attached_is_deleted() {
    // The first one leaves the NAT gateway with a reference to its Service Gateway.
    let chosen = ["absent-keeps-service-gateway", "null-clears-registration"];
    let chosen = chosen.map(|id| find(id).unwrap());
    // Stopped once it is registered.
    let mut azure = Stopping::new(|request| is(request, Method::Post, "updateServices"));
    let checked = check(&mut azure, &site(), &chosen);
    assert!(checked.report.interrupted && checked.report.left.is_empty(), "{:?}", checked.report);
    assert_eq!(azure.azure.azure().resources(), Vec::<Value>::new());
}

#[test]
fn what_a_failed_attempt_has_made_is_deleted_although_the_next_one_is_refused() {
    let tries = std::cell::Cell::new(0);
    let request = |request: &mut Request| {
        let put = is(request, Method::Put, "publicIPAddresses");
        tries.set(tries.get() + u32::from(put));
        let again = put && tries.get() > 1;
        refused_where(again, 403, "RequestDisallowedByPolicy")
    };
    // Azure makes it and answers that it failed.
    let answer = |request: &Request, reply: &mut arm::Reply| {
        if is(request, Method::Put, "publicIPAddresses") {
            let body = json!({"error": {"code": "ServiceUnavailable", "message": "Altered."}});
            let body = Some(body.into());
            *reply = arm::Reply { status: 503, body, ..arm::Reply::default() };
        }
    };
    let azure = Emulated::new(&site(), options());
    let mut altered = Altered { azure, alter: By(request, answer), stopped: false };
    let checked = check(&mut altered, &site(), &[find("list-lag").unwrap()]);
    assert_eq!(with(&checked, "not tried"), ["list-lag"]);
    assert_eq!(altered.azure.azure().resources(), Vec::<Value>::new());
}

#[test]
fn what_cannot_be_deleted_is_named() {
    let request = |request: &mut Request| {
        let kept = request.method == Method::Delete && path(request).contains("-vnet?");
        refused_where(kept, 409, "ScopeLocked")
    };
    let chosen = [find("echo-nic").unwrap()];
    let report = check(&mut altered(options(), request), &site(), &chosen).report;
    assert_eq!(report.left.len(), 1);
    let id = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers/\
              Microsoft.Network/virtualNetworks/ballast-check-0123abcd-vnet";
    assert_eq!(report.left[0].command(), format!("az resource delete --ids {id}"));
    assert!(report.left[0].why.contains("ScopeLocked"), "{}", report.left[0].why);
}

fn recorded(options: Options) -> Recording {
    let exchanges = check(&mut Emulated::new(&site(), options), &site(), &all()).exchanges;
    Recording { site: site(), exchanges }
}

fn replayed(recording: &Recording, options: Options) -> Vec<String> {
    let found = compare(recording, &mut Emulated::new(&recording.site, options));
    found.iter().map(|d| format!("{}: {}: {}", d.of, d.request, d.what)).collect()
}

#[test]
fn a_recording_of_the_emulator_is_the_emulator() {
    // Other ETags, ids and addresses are no difference, nor is another time.
    let text = write(&recorded(options()), Subscription::Shown).unwrap();
    let recording = read(&text).unwrap();
    let slower = Options { seed: 7, lro_ms: 5_000, ..options() };
    assert_eq!(replayed(&recording, slower), [""; 0]);
}

#[test]
fn a_recording_shows_where_the_emulator_differs() {
    let recording = recorded(options());
    let other = Options { private_links_of_balancer: Some(4), ..options() };
    let found = replayed(&recording, other);
    assert!(
        found.iter().any(|line| line.contains("links-4: answer: 201, here 400 ")),
        "{found:#?}"
    );
    let other = Options { defaults: Switch::Off, ..options() };
    let found = replayed(&recording, other);
    assert!(
        found.iter().any(|line| line.contains("properties.ipTags: not here")
            || line.contains("properties.idleTimeoutInMinutes: not here")),
        "{found:#?}"
    );
    let other = Options { retry_after_s: 0, ..options() };
    let found = replayed(&recording, other);
    assert!(found.iter().any(|line| line.contains("header retry-after: not here")), "{found:#?}");
    let mut altered = recording.clone();
    let refused = |exchange: &&mut Exchange| exchange.of == "refused-host-bits";
    let exchange = altered.exchanges.iter_mut().find(refused).unwrap();
    exchange.answer.body = Some(json!({"error": {"code": "Another", "message": "x"}}));
    let found = replayed(&altered, options());
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains("answer: 400 Another, here 400 SecurityRuleInvalidAddressPrefix"));
}

#[test]
fn a_recording_holds_no_secret() {
    let recording = recorded(options());
    let text = write(&recording, Subscription::Hidden).unwrap();
    assert!(!text.contains(&site().subscription), "the subscription is hidden");
    let lower = text.to_lowercase();
    assert!(!lower.contains("authorization\":") && !lower.contains("bearer"));
    // What is hidden is replayed all the same.
    assert_eq!(replayed(&read(&text).unwrap(), options()), [""; 0]);
}

/// An emulator, and a cloud config for it.
fn served(folder: &std::path::Path, words: &[&str]) -> (Process, String) {
    let config = folder.join("azure.json").to_str().unwrap().to_owned();
    let fixed = ["azure-emulator", "--listen", "127.0.0.1:0", "--write-cloud-config", &config];
    let mut emulator = Process::start(&[&fixed[..], words].concat());
    emulator.address();
    (emulator, config)
}

#[test]
fn the_command_checks_records_and_compares() {
    let folder = tempfile::tempdir().unwrap();
    let (_emulator, config) = served(folder.path(), &["--throttle"]);
    let record = folder.path().join("run.jsonl").to_str().unwrap().to_owned();
    let fixed = ["azure-check", "--cloud-config", &config, "--resource-group", "rg"];
    let call = |more: &[&str]| run(&[&fixed[..], more].concat());

    // There is no terminal to ask on.
    let (code, out, err) = call(&[]);
    assert!(code == 64 && err.contains("no confirmation is possible"), "{code} {out} {err}");
    let (code, out, err) = call(&["--dry-run"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("  PUT publicIPAddresses/ballast-check-<run>-ip\n"), "{out}");
    assert!(out.contains("Nothing was sent."), "{out}");
    let (code, out, _) = call(&["--dry-run", "-o", "json"]);
    let forecast: Value = serde_json::from_str(&out).unwrap();
    let kinds: BTreeSet<&str> = forecast["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| kind["kind"].as_str().unwrap())
        .collect();
    assert!(code == 0 && kinds.contains("natGateways") && kinds.contains("loadBalancers"));

    let (code, out, err) = call(&["--yes", "--record", &record, "-o", "json"]);
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    let differs = report["assumptions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|line| line["verdict"] == "differs")
        .collect::<Vec<_>>();
    assert!(code == 0 && differs.is_empty(), "{code} {differs:#?} {err}");
    assert_eq!(report["left"], json!([]));
    assert!(report["confirmed"].as_u64().unwrap() > 60, "{}", report["confirmed"]);

    let compared = ["azure-emulator", "--throttle", "--compare", &record];
    let (code, out, err) = run(&compared);
    assert!(code == 0 && out.starts_with("0 differences in "), "{code} {out} {err}");
    let (code, out, _) = run(&[&compared[..], &["--retry-after", "0", "--lro-ms", "9"]].concat());
    assert!(code == 2 && out.contains("header azure-asyncoperation: only here"), "{code} {out}");
    let (code, _, err) = run(&["azure-emulator", "--compare", &config]);
    assert!(code == 65 && err.contains("cannot read the recording"), "{code} {err}");
}

#[test]
fn an_interrupted_command_deletes_what_it_made() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("azure.json").to_str().unwrap().to_owned();
    let fixed = ["azure-emulator", "--listen", "127.0.0.1:0", "--write-cloud-config", &config];
    let mut emulator = Process::start(&[&fixed[..], &["--latency-ms", "20"]].concat());
    let address = emulator.address();
    let record = folder.path().join("run.jsonl");
    let fixed = ["azure-check", "--cloud-config", &config, "--resource-group", "rg", "--yes"];
    let words = [&fixed[..], &["--record", record.to_str().unwrap()]].concat();
    let mut checking = Process::start_logging(&words);
    checking.line_with("  if-match-load-balancer: confirmed");
    assert_eq!(checking.interrupt(), 1);
    let (code, all) = http(&address, "GET", "/_/state", None);
    assert_eq!(code, 200, "{all}");
    assert!(!all.to_string().contains("ballast-check-"), "{all}");
    let recording = read(&std::fs::read_to_string(record).unwrap()).unwrap();
    let last = recording.exchanges.last().unwrap();
    assert_eq!((last.of.as_str(), last.request.method.as_str()), ("clean", "DELETE"));
}

#[test]
fn the_command_says_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let (_emulator, config) = served(folder.path(), &[]);
    let fixed = ["azure-check", "--cloud-config", &config, "--resource-group", "rg", "--yes"];
    let only = ["--only", "remaining-of-subscription", "--only", "buckets-of-subscription"];
    let (code, out, err) = run(&[&fixed[..], &only, &["--only", "delete-absent"]].concat());
    assert_eq!(code, 2, "{out}{err}");
    assert!(out.contains("differs    buckets-of-subscription: "), "{out}");
    assert!(out.contains("stands in docs/dev/azure-facts.md#calls"), "{out}");
    assert!(out.contains("confirmed  delete-absent: "), "{out}");
    assert!(
        err.contains("az resource list --resource-group rg --tag ballast-azure-check="),
        "{err}"
    );
    let (code, _, err) = run(&[&fixed[..], &["--only", "nothing"]].concat());
    assert!(code == 64 && err.contains("no such assumption; --list names them"), "{err}");
    let (code, out, _) = run(&["azure-check", "--list"]);
    assert_eq!((code, out.lines().count()), (0, ASSUMPTIONS.len()));
}

#[test]
fn the_parts_of_a_recording_tell_what_each_request_is_for() {
    let recording = recorded(options());
    let parts = |part: Part| recording.exchanges.iter().filter(|e| e.part == part).count();
    for part in [Part::Setup, Part::Probe, Part::Poll, Part::Clean] {
        assert!(parts(part) > 10, "{part:?}");
    }
}
