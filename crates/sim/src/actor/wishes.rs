//! Owners of Services who use every annotation there is, several on one BYO public IP, now and then
//! with a value that refuses the Service. What contradicts itself is left out, with its reason: in
//! the end every Service can be satisfied.

use super::values::{self, OTHER_GROUP, key};
use super::{Company, families};
use crate::fault::Fault;
use crate::random::Random;
use crate::scene::{Layout, Scene, network};
use crate::stage::Stage;
use crate::tally::count;
use plan::ask::annotation::PAUSE;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Services that are made here.
const SERVICES: u64 = 4;

/// Owners whose numbers differ by this are of one kind.
pub(super) const KINDS: u64 = 5;

/// A port's protocol, name, number and `appProtocol`.
pub(super) type Port = (&'static str, &'static str, u64, Option<&'static str>);

/// Ports that a Service may have.
pub(super) const PORTS: [Port; 5] = [
    ("TCP", "http", 80, None),
    ("TCP", "https", 443, Some("https")),
    ("UDP", "dns", 53, None),
    ("TCP", "dns-tcp", 53, Some("kubernetes.io/h2c")),
    ("SCTP", "sigtran", 500, None),
];

/// The field that moves target ports, and in its highest value node ports.
pub(super) const SHIFT: &str = "target ports";

/// Flags of the spec that may be drawn.
pub(super) const FIELDS: [&str; 6] =
    ["local", "affinity", "ranges", "no node ports", "address", ONE_FAMILY];

/// The field of a Service that could have two families and has its first one alone.
pub(super) const ONE_FAMILY: &str = "one family";

/// What a Service names an existing address by.
const BYO_KEYS: [&str; 4] = [key::PIP, key::PIP_IPV6, key::IPV4, key::IPV6];

/// What an owner asks for, before contradictions are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(super) internal: bool,
    /// By keys of the annotation table.
    pub(super) annotations: BTreeMap<&'static str, String>,
    /// Indices into [`PORTS`].
    pub(super) ports: Vec<usize>,
    pub(super) fields: BTreeMap<&'static str, u64>,
    /// The annotation with a value that is wrong on purpose, or the one that pauses it.
    pub(super) wrong: Option<&'static str>,
    /// Whether it wants no load balancer for now.
    pub(super) off: bool,
    /// Whether IPv6 is its first family, where it has two.
    pub(super) ipv6_first: bool,
}

pub(super) fn is_dual(owner: u64, scene: &Scene) -> bool {
    // A Private Link Service and an IPv6 frontend exclude each other on one load balancer.
    let linked = scene.layout == Layout::Nics && !scene.with.contains(&Fault::Families);
    owner % KINDS == 1 && families::suits(scene.layout) && !linked
}

/// Owners whose Service is public whatever they draw. Their public IP is in another resource group
/// for as long as the Service lives: a group that is named no more when a process starts is not
/// read, and what stands there stays (docs/dev/simulation-tables.md).
fn is_elsewhere(owner: u64) -> bool {
    owner % KINDS == SERVICES - 1
}

pub(super) fn ports(random: &mut Random) -> Vec<usize> {
    let mut ports: Vec<usize> = (0..PORTS.len()).filter(|_| random.permille(350)).collect();
    if ports.is_empty() {
        ports.push(0);
    }
    ports
}

impl Wish {
    pub(super) fn draw(owner: u64, random: &mut Random) -> Self {
        let mut wish = Self {
            internal: random.permille(400),
            ipv6_first: random.permille(400),
            ..Self::default()
        };
        wish.ports = ports(random);
        for field in FIELDS {
            if random.permille(200) {
                wish.fields.insert(field, random.below(4));
            }
        }
        for _ in 0..random.below(7) {
            let (key, value) = values::draw(owner, random);
            wish.annotations.insert(key, value);
        }
        wish
    }

    pub(super) fn edit(&mut self, owner: u64, random: &mut Random) -> &'static str {
        match random.below(12) {
            0 => {
                self.internal = !self.internal;
                "move a wish between inside and outside"
            }
            1 => {
                self.ports = ports(random);
                "change the ports of a wish"
            }
            2 | 3 => {
                let field = *random.pick(&FIELDS);
                if self.fields.remove(field).is_none() {
                    self.fields.insert(field, random.below(4));
                }
                "change a field of a wish"
            }
            4 => {
                // What is in a group that is named no more is not read after a restart.
                let key = values::draw(owner, random).0;
                let paused = key.ends_with("resource-group");
                self.wrong = Some(if paused { PAUSE } else { key });
                if paused { "pause a wish" } else { "annotate a wish with a wrong value" }
            }
            5 | 6 => {
                let keys: Vec<&'static str> = self.annotations.keys().copied().collect();
                if let Some(key) = random.choose(&keys) {
                    self.annotations.remove(key);
                }
                self.wrong = None;
                "take an annotation off a wish"
            }
            _ => {
                let (key, value) = values::draw(owner, random);
                self.annotations.insert(key, value);
                "annotate a wish"
            }
        }
    }

    /// The same without the value that is wrong on purpose.
    pub(super) fn mended(self) -> Self {
        Self { wrong: None, ..self }
    }

    /// The annotations without what contradicts them.
    pub(super) fn settled(&self, owner: u64, scene: &Scene) -> BTreeMap<&'static str, String> {
        let mut set = self.annotations.clone();
        let internal = self.internal && !is_elsewhere(owner);
        set.remove(key::INTERNAL);
        if internal && scene.layout != Layout::Containers {
            set.insert(key::INTERNAL, "true".to_owned());
        }
        // A Basic load balancer takes no Standard public IP.
        if scene.is_basic() {
            for (standard, basic) in [("byo-pip", "byo-pip3"), ("20.50.0.10", "20.50.0.14")] {
                for value in set.values_mut().filter(|value| *value == standard) {
                    *value = basic.to_owned();
                }
            }
        }
        self.settle_group(owner, &mut set);
        self.settle_address(owner, internal, scene, &mut set);
        self.settle_link(owner, internal, scene, &mut set);
        let is_on = |set: &BTreeMap<&str, String>, key: &str| {
            set.get(key).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
        };
        // Not drawn with pools of NICs: docs/dev/simulation-tables.md.
        if scene.layout.has_nics() {
            set.remove(key::NO_FLOATING_IP);
        }
        // Who shares an address is on one load balancer, which the primary set's is.
        if let Some(mode) = set.get_mut(key::MODE).filter(|_| scene.has_two_sets()) {
            if owner.is_multiple_of(2) && mode == "vmss" {
                *mode = "vmss2".to_owned();
            }
            let pinned = self.fields.contains_key("address");
            if pinned || BYO_KEYS.iter().any(|key| set.contains_key(key)) {
                set.remove(key::MODE);
            }
        }
        // One rule for all ports leaves no room for another Service's rules.
        let is_pinned = set.contains_key(key::IPV4) || set.contains_key(key::IPV6);
        if is_on(&set, key::ALL_PORTS) && is_pinned {
            set.remove(key::ALL_PORTS);
        }
        if self.fields.contains_key("ranges") {
            set.remove(key::RANGES);
            set.remove(key::SOURCES);
        }
        // Nothing enforces them there: a Service that limits its sources is refused.
        if scene.layout == Layout::Containers {
            set.retain(|key, _| ![key::RANGES, key::SOURCES, key::TAGS].contains(key));
        }
        // Only Standard load balancers of nodes wait longer than half an hour.
        if matches!(scene.layout, Layout::PerSet | Layout::Containers) {
            set.retain(|key, value| *key != key::TIMEOUT || value != "100");
        }
        set
    }

    /// Public IPs are looked for in the group that the annotation names.
    fn settle_group(&self, owner: u64, set: &mut BTreeMap<&'static str, String>) {
        let named = set.get(key::PIP).is_some_and(|name| name == "byo-pip4");
        if is_elsewhere(owner) {
            for key in [key::PIP_IPV6, key::IPV4, key::IPV6] {
                set.remove(key);
            }
            if !named {
                set.remove(key::PIP);
            }
            set.insert(key::GROUP, OTHER_GROUP.to_owned());
        } else {
            if named {
                set.insert(key::PIP, "byo-pip3".to_owned());
            }
            if set.get(key::GROUP).is_some_and(|group| group == OTHER_GROUP) {
                set.remove(key::GROUP);
            }
        }
    }

    /// A pinned address suits the side and the subnet.
    fn settle_address(
        &self,
        owner: u64,
        internal: bool,
        scene: &Scene,
        set: &mut BTreeMap<&'static str, String>,
    ) {
        if let Some(address) = set.get(key::IPV4) {
            let suits = match set.get(key::SUBNET).map(String::as_str) {
                _ if !internal => address.starts_with("20.50."),
                Some("apps") => address.starts_with("10.225."),
                _ => address.starts_with("10.224."),
            };
            if !suits {
                set.remove(key::IPV4);
            }
        }
        if let Some(address) = set.get(key::IPV6) {
            let suits = match set.get(key::SUBNET).map(String::as_str) {
                _ if !internal => address.starts_with("2603:"),
                Some("apps") => address.starts_with("fd00:0:0:1:"),
                _ => address.starts_with("fd00::"),
            };
            if !suits {
                set.remove(key::IPV6);
            }
        }
        if !internal {
            // Who shares an address is on one load balancer, and selectors may want two.
            if scene.has_selectors() && !is_elsewhere(owner) {
                BYO_KEYS.iter().for_each(|key| drop(set.remove(key)));
            }
            // A label stays on a BYO public IP: no other public IP can have it.
            let byo = BYO_KEYS.iter().any(|key| set.contains_key(key));
            set.retain(|key, value| !byo || *key != key::LABEL || value.is_empty());
            // Who has one family names its public IP without a suffix.
            if is_dual(owner, scene) && self.is_ipv6_alone(internal, scene) {
                let prefix = network("publicIPPrefixes/theirs-prefix6");
                for (key, value) in [(key::PIP, "byo-pip6".to_owned()), (key::PREFIX, prefix)] {
                    if let Some(named) = set.get_mut(key) {
                        *named = value;
                    }
                }
            }
        }
        let pinned = [key::IPV4, key::IPV6, key::PIP, key::PIP_IPV6];
        if scene.layout == Layout::Several && pinned.iter().any(|key| set.contains_key(key)) {
            set.remove(key::PLACED_ON);
        }
        // A load balancer that does not choose the Service is not one that it may be on.
        if scene.has_selectors() && set.get(key::PLACED_ON).is_some_and(|on| on == "lb2") {
            set.remove(key::PLACED_ON);
        }
    }

    /// A Private Link Service stands where Azure takes it, and keeps its name.
    fn settle_link(
        &self,
        owner: u64,
        internal: bool,
        scene: &Scene,
        set: &mut BTreeMap<&'static str, String>,
    ) {
        if !scene.takes_links() || !internal {
            set.remove(key::LINK);
        }
        set.remove(key::LINK_NAME);
        if owner % 2 == 1 && set.contains_key(key::LINK) {
            set.insert(key::LINK_NAME, format!("link-of-wish-{owner}"));
        }
        if set.contains_key(key::LINK_ADDRESS) {
            set.insert(key::LINK_SUBNET, "apps".to_owned());
        }
    }
}

pub(super) fn name(owner: u64) -> String {
    format!("wish-{owner}")
}

/// The merge patch that makes one manifest the other.
fn difference(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return new.clone() };
    let mut patch = Map::new();
    for (key, value) in new {
        match old.get(key) {
            Some(before) if before == value => {}
            Some(before) => drop(patch.insert(key.clone(), difference(before, value))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Value::Object(patch)
}

impl Company {
    pub(super) fn wish(&mut self, random: &mut Random, stage: &mut Stage) -> &'static str {
        count(&mut stage.tally.faults, Fault::Annotations.name());
        let owner = random.below(SERVICES);
        let place = ("default".to_owned(), name(owner));
        let Some(mut wish) = self.wishes.get(&owner).cloned() else {
            let wish = Wish::draw(owner, random);
            self.services.insert(place, wish.service(owner, &self.scene));
            self.wishes.insert(owner, wish);
            self.tend(stage);
            return "create a wish";
        };
        match random.below(10) {
            0 => {
                self.wishes.remove(&owner);
                self.services.remove(&place);
                self.delete(stage, &place);
                "delete a wish"
            }
            1 => {
                wish = Wish::draw(owner, random);
                self.services.insert(place.clone(), wish.service(owner, &self.scene));
                self.wishes.insert(owner, wish);
                self.delete(stage, &place);
                self.tend(stage);
                "create a wish again"
            }
            _ => {
                let what = wish.edit(owner, random);
                self.grant(owner, wish, stage);
                what
            }
        }
    }

    /// A Service becomes another wish.
    pub(super) fn grant(&mut self, owner: u64, wish: Wish, stage: &mut Stage) {
        let place = ("default".to_owned(), name(owner));
        if let Some(standing) = self.services.get(&place) {
            let patch = difference(standing, &wish.service(owner, &self.scene));
            self.wishes.insert(owner, wish);
            self.apply(stage, &place, &patch);
        }
    }

    /// Wrong values go.
    pub(super) fn mend_wishes(&mut self, stage: &mut Stage) {
        let wrong: Vec<(u64, Wish)> = self
            .wishes
            .iter()
            .filter(|(_, wish)| wish.wrong.is_some())
            .map(|(owner, wish)| (*owner, wish.clone().mended()))
            .collect();
        for (owner, wish) in wrong {
            self.grant(owner, wish, stage);
        }
    }
}
