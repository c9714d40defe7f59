use crate::plan;
use fixture::{claimed, policy, service, world};
use model::kubernetes::{Condition, Deletion, LoadBalancerType, Service, Truth, Wish};
use model::obstacle::{Obstacle, ObstacleKind, Subject};
use model::plan::{ConditionEdit, Edit};
use model::world::{Fact, Hold, Need};
use model::{Group, World};
use std::sync::Arc;

/// The World of the fixture with its Service altered.
fn with(alter: impl Fn(&mut Service)) -> World {
    let mut world = world();
    world.kubernetes.services.values_mut().for_each(|s| alter(Arc::make_mut(s)));
    world
}

fn annotate(service: &mut Service, key: &str, value: &str) {
    service.annotations = self::service(&[(key, value)]).annotations;
}

/// Status writes of the plan: how many addresses they set, and what of the condition.
fn written(world: &World) -> Vec<(Option<usize>, ConditionEdit)> {
    let (plan, _) = plan(world, &policy());
    assert_eq!(plan_check::check(world, &policy(), &plan), []);
    let edits = plan.writes.into_iter().map(|write| write.edit);
    edits
        .filter_map(|edit| match edit {
            Edit::Status { ingress, condition, .. } => Some((ingress.map(|l| l.len()), condition)),
            _ => None,
        })
        .collect()
}

fn set(truth: Truth, reason: &str, message: &str, since: Option<&str>) -> ConditionEdit {
    ConditionEdit::Set(condition(truth, reason, message, since))
}

fn condition(truth: Truth, reason: &str, message: &str, since: Option<&str>) -> Condition {
    let since = since.map(Arc::from);
    Condition { truth, reason: reason.into(), message: message.into(), since }
}

const TYPO: &str = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout: must be \
                    a whole number of minutes from 4 to 100 (got \"ten\")";
const WELL: &str = "Azure is as the Service asks.";

fn mistype(service: &mut Service) {
    annotate(service, "azure-load-balancer-tcp-idle-timeout", "ten");
}

#[test]
fn a_quiet_service_is_not_written() {
    assert_eq!(written(&world()), []);
    let told = with(|s| s.condition = Some(condition(Truth::True, "Programmed", WELL, Some("t"))));
    assert_eq!(written(&told), []);
}

#[test]
fn it_comes_with_the_addresses_in_one_write() {
    let wanted = set(Truth::True, "Programmed", WELL, None);
    assert_eq!(written(&with(|s| s.ingress.clear())), [(Some(1), wanted)]);
}

#[test]
fn a_refusal_stands_until_it_is_put_right() {
    let refused = set(Truth::False, "InvalidIdleTimeout", TYPO, None);
    assert_eq!(written(&with(mistype)), [(None, refused)]);
    let told = |at: &str| Some(condition(Truth::False, "InvalidIdleTimeout", TYPO, Some(at)));
    let stands = with(|s| {
        mistype(s);
        s.condition = told("then");
    });
    assert_eq!(written(&stands), []);
    let righted = with(|s| s.condition = told("then"));
    assert_eq!(written(&righted), [(None, set(Truth::True, "Programmed", WELL, None))]);
}

#[test]
fn the_time_is_that_of_the_status_and_not_of_its_reason() {
    let other = with(|s| {
        mistype(s);
        s.condition = Some(condition(Truth::False, "InvalidPort", "another", Some("then")));
    });
    let wanted = set(Truth::False, "InvalidIdleTimeout", TYPO, Some("then"));
    assert_eq!(written(&other), [(None, wanted)]);
}

#[test]
fn a_note_stands_beside_true() {
    let noted = with(|s| annotate(s, "azure-load-balancer-mode", "__auto__"));
    let found = written(&noted);
    let [(None, ConditionEdit::Set(condition))] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((condition.truth, &*condition.reason), (Truth::True, "ModeIgnored"));
    assert!(condition.message.contains("azure-load-balancer-mode"), "{}", condition.message);
    let told = with(|s| {
        annotate(s, "azure-load-balancer-mode", "__auto__");
        s.condition = Some(condition.clone());
    });
    assert_eq!(written(&told), []);
    let gone = with(|s| s.condition = Some(condition.clone()));
    assert_eq!(written(&gone), [(None, set(Truth::True, "Programmed", WELL, None))]);
}

/// What the plan writes of conditions while this stands in the way.
fn obstructed(world: &World, code: &str, message: &str, attempt: u32) -> Vec<ConditionEdit> {
    let (mut plan, report) = plan(world, &policy());
    let obstacle = Obstacle {
        services: [service(&[]).uid].into(),
        operation: "PUT networkSecurityGroups/nsg".into(),
        code: code.into(),
        message: message.into(),
        attempt,
        next_ms: Some(u64::from(attempt)),
        ..fixture::obstacle(Subject::Cluster, ObstacleKind::Rejected)
    };
    crate::note_obstacles(&mut plan, &report, world, &policy(), [&obstacle]);
    assert_eq!(plan_check::check(world, &policy(), &plan), []);
    let edits = plan.writes.into_iter().map(|write| write.edit);
    let conditions = edits.filter_map(|edit| match edit {
        Edit::Status { condition, .. } => Some(condition),
        _ => None,
    });
    conditions.collect()
}

#[test]
fn what_stands_in_the_way_is_told_once_for_each_cause() {
    let text = "PUT networkSecurityGroups/nsg: rejected by Azure (Full: no room); next attempt \
                within 60 s";
    let mut world = world();
    let target = policy().security_group_id();
    let (reason, code) = ("no room".into(), "Full".into());
    let hold = Hold { target, reason, code, until_ms: Some(9), attempt: 1 };
    world.holds.insert(service(&[]).uid, hold);
    assert_eq!(written(&world), [], "planning does not know how often it was attempted");
    let wanted = condition(Truth::False, "AzureRejected", text, None);
    assert_eq!(obstructed(&world, "Full", "no room", 1), [ConditionEdit::Set(wanted.clone())]);
    let service = world.kubernetes.services.values_mut().next().expect("one");
    Arc::make_mut(service).condition = Some(wanted);
    assert_eq!(obstructed(&world, "Full", "no room", 7), [], "another attempt is no news");
    assert_eq!(obstructed(&world, "Gone", "no room", 1).len(), 1);
}

#[test]
fn a_programmed_service_is_not_held_up() {
    assert_eq!(obstructed(&world(), "Full", "no room", 1), []);
}

/// The write of the status failed before: by the time the condition is read it has not.
#[test]
fn a_write_of_the_status_says_nothing_of_its_own_failures() {
    let well = condition(Truth::True, "Programmed", WELL, Some("then"));
    let untold = with(|s| {
        s.ingress.clear();
        s.condition = Some(well.clone());
    });
    assert_eq!(obstructed(&untold, "429", "too many requests", 3), [ConditionEdit::Keep]);
}

#[test]
fn while_something_is_on_its_way_it_stays() {
    let told = condition(Truth::False, "InvalidIdleTimeout", TYPO, Some("then"));
    let moving = with(|s| {
        annotate(s, "azure-load-balancer-tcp-idle-timeout", "10");
        s.condition = Some(told.clone());
    });
    assert_eq!(written(&moving), []);
}

#[test]
fn it_goes_with_the_last_that_is_left() {
    let mut world = with(|s| {
        *s = claimed(s.clone());
        (s.wish, s.load_balancer_type) = (Wish::Nothing, LoadBalancerType::Other);
        s.condition = Some(condition(Truth::True, "Programmed", WELL, None));
    });
    assert_eq!(written(&world), []);
    world.azure.balancers.known_mut().expect("listed").clear();
    world.azure.public_ips.values_mut().for_each(|ips| ips.known_mut().expect("listed").clear());
    world.azure.security_group = Fact::Known(None);
    assert_eq!(written(&world), [(Some(0), ConditionEdit::Remove)]);
    let service = world.kubernetes.services.values_mut().next().expect("one");
    Arc::make_mut(service).deletion = Deletion::Requested;
    assert_eq!(written(&world), []);
}

#[test]
fn a_message_is_as_long_as_the_api_server_takes() {
    let mut world = world();
    let uid = service(&[]).uid;
    let (target, reason) = (policy().security_group_id(), "no room".into());
    let hold = Hold { target, reason, code: "Full".into(), until_ms: Some(5_000), attempt: 1 };
    world.holds.insert(uid, hold);
    let found = obstructed(&world, "Full", &"ä".repeat(20_000), 1);
    let [ConditionEdit::Set(condition)] = found.as_slice() else { panic!("{found:?}") };
    let length = condition.message.len();
    assert!((32_760..=32_768).contains(&length), "{length}");
    assert!(condition.message.ends_with('…'));
}

/// What becomes of the condition of a Service while this cannot be read.
fn unread(world: &World, need: Need) -> Vec<(Truth, String, String)> {
    let (mut plan, report) = plan(world, &policy());
    let obstacle = Obstacle {
        operation: need.operation().into(),
        code: "Code".into(),
        message: "no".into(),
        ..fixture::obstacle(Subject::Read(need), ObstacleKind::Unreadable)
    };
    crate::note_obstacles(&mut plan, &report, world, &policy(), [&obstacle]);
    assert_eq!(plan_check::check(world, &policy(), &plan), []);
    let edits = plan.writes.into_iter().map(|write| match write.edit {
        Edit::Status { ingress: None, condition: ConditionEdit::Set(c), .. } => c,
        other => panic!("{other:?}"),
    });
    edits.map(|c| (c.truth, c.reason.to_string(), c.message.to_string())).collect()
}

#[test]
fn a_programmed_service_that_cannot_be_checked_stays_true_and_says_so() {
    let text = "Azure was as the Service asks when it was last read; GET loadBalancers: cannot be \
                read (Code: no); next attempt within 60 s";
    let wanted = (Truth::True, "AzureUnreadable".to_owned(), text.to_owned());
    assert_eq!(unread(&world(), Need::Balancers), std::slice::from_ref(&wanted));
    let (truth, reason, message) = &wanted;
    let stands = with(|s| s.condition = Some(condition(*truth, reason, message, Some("then"))));
    assert_eq!(unread(&stands, Need::Balancers), [], "it is told once");
    let well = set(Truth::True, "Programmed", WELL, Some("then"));
    assert_eq!(written(&stands), [(None, well)], "and taken back");
    let noted = with(|s| annotate(s, "azure-load-balancer-mode", "__auto__"));
    let [(Truth::True, _, message)] = &unread(&noted, Need::Balancers)[..] else { panic!() };
    assert!(message.contains("azure-load-balancer-mode") && message.contains(text), "{message}");
}

#[test]
fn only_services_whose_resources_are_read_are_concerned() {
    let subnet = Need::Subnet(policy().balancer_id("x"));
    let elsewhere = Need::PublicIps(Group::new("elsewhere"));
    for need in [Need::Zones, Need::NatGateways, subnet, elsewhere.clone()] {
        assert_eq!(unread(&world(), need.clone()), [], "{need:?}");
    }
    for need in [Need::SecurityGroup, Need::PublicIps(policy().group)] {
        assert_eq!(unread(&world(), need.clone()).len(), 1, "{need:?}");
    }
    let refused = with(mistype);
    let found = unread(&refused, Need::Balancers);
    assert_eq!(found.first().map(|c| c.1.as_str()), Some("InvalidIdleTimeout"));
}

/// A Service that asks for a Private Link Service as it is read does so here.
#[test]
fn a_flag_says_true_wherever_it_does_so_to_the_reader() {
    let group = policy().private_link_group;
    let depends = |key: &str, value: &str, need: &Need| {
        super::depends(&service(&[(key, value)]), need, &policy())
    };
    let links = Need::PrivateLinks(group);
    let subnet = Need::Subnet(policy().subnet_id("nodes"));
    for (value, asked, internal) in
        [("true", true, true), (" True ", true, false), ("TRUE", true, false), ("no", false, false)]
    {
        assert_eq!(depends("azure-pls-create", value, &links), asked, "{value}");
        assert_eq!(depends("azure-pls-create", value, &subnet), asked, "{value}");
        assert_eq!(depends("azure-load-balancer-internal", value, &subnet), internal, "{value}");
    }
}
