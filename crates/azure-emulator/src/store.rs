//! The resources and the indexes over them: who uses whom, which private address is taken, which
//! DNS name and public address belong to whom. An index keeps each call as cheap as what it
//! changes, also with ten thousand public IPs.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use crate::entry::Entry;

use crate::options::Switch;
use crate::path::parent;
use crate::uses::{Use, private_addresses, public_name, uses};

/// Everything in Azure, by lower-case id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Store {
    entries: BTreeMap<String, Entry>,
    kinds: BTreeMap<String, BTreeSet<String>>,
    /// Target id -> its users.
    users: BTreeMap<String, BTreeSet<Use>>,
    /// Resource -> what it uses.
    used: BTreeMap<String, Vec<Use>>,
    /// Subnet -> address -> the element that has it.
    addresses: BTreeMap<String, BTreeMap<IpAddr, String>>,
    held: BTreeMap<String, Vec<(String, IpAddr)>>,
    /// DNS name or public address -> resource.
    names: BTreeMap<String, String>,
    named: BTreeMap<String, Vec<String>>,
    /// (kind, subscription) -> how many.
    counts: BTreeMap<(String, String), usize>,
    /// Resource -> how a GET shows it, until it or what it shows of others changes.
    views: RefCell<Views>,
}

/// A cache of views, with the option that they depend on, which may change at any time.
#[derive(Debug, Clone, Default)]
struct Views {
    nic_pool_addresses: Option<Switch>,
    made: BTreeMap<String, Arc<Value>>,
    /// Views, each with its shortened form for requests that do not expand it.
    parts: BTreeMap<String, (Arc<Value>, Arc<Value>)>,
}

fn subscription_of(key: &str) -> String {
    key.split('/').nth(2).unwrap_or("").to_owned()
}

impl Store {
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.forget_view(key);
        self.entries.get_mut(key)
    }

    /// A resource by an id in any letters.
    pub(crate) fn find(&self, id: &str) -> Option<&Entry> {
        self.entries.get(&id.to_lowercase())
    }

    /// The resource that holds `id`, and the element if `id` names one.
    pub(crate) fn holder(&self, id: &str) -> Option<(&Entry, Option<&Value>)> {
        if let Some(entry) = self.find(id) {
            return Some((entry, None));
        }
        let owner = self.find(parent(id)?)?;
        let mut steps = id.rsplit('/');
        let (name, collection) = (steps.next()?, steps.next()?);
        let properties = owner.value.get("properties")?.as_object()?;
        let (_, elements) =
            properties.iter().find(|(key, _)| crate::json::same(key, collection))?;
        let element = crate::json::named(elements.as_array()?, name)?;
        Some((owner, Some(element)))
    }

    /// Puts a resource in place; returns the ids whose users changed.
    pub(crate) fn insert(&mut self, key: String, entry: Entry) -> BTreeSet<String> {
        let mut touched = self.unindex(&key);
        self.forget_view(&key);
        for item in uses(&key, &entry) {
            if !touched.remove(&(item.target.clone(), item.clone())) {
                touched.insert((item.target.clone(), item.clone()));
            }
            self.users.entry(item.target.clone()).or_default().insert(item.clone());
            self.used.entry(key.clone()).or_default().push(item);
        }
        for (subnet, address, element) in private_addresses(&entry) {
            self.addresses.entry(subnet.clone()).or_default().insert(address, element);
            self.held.entry(key.clone()).or_default().push((subnet, address));
        }
        for name in public_name(&entry) {
            self.names.insert(name.clone(), key.clone());
            self.named.entry(key.clone()).or_default().push(name);
        }
        if self.kinds.entry(entry.kind.clone()).or_default().insert(key.clone()) {
            let place = (entry.kind.clone(), subscription_of(&key));
            *self.counts.entry(place).or_default() += 1;
        }
        self.entries.insert(key, entry);
        touched.iter().for_each(|(target, _)| self.forget_view(target));
        touched.into_iter().map(|(target, _)| target).collect()
    }

    /// Takes a resource away; returns it and the ids whose users changed.
    pub(crate) fn remove(&mut self, key: &str) -> Option<(Entry, BTreeSet<String>)> {
        let touched = self.unindex(key);
        self.forget_view(key);
        touched.iter().for_each(|(target, _)| self.forget_view(target));
        let entry = self.entries.remove(key)?;
        if let Some(keys) = self.kinds.get_mut(&entry.kind) {
            keys.remove(key);
        }
        if let Some(count) = self.counts.get_mut(&(entry.kind.clone(), subscription_of(key))) {
            *count -= 1;
        }
        Some((entry, touched.into_iter().map(|(target, _)| target).collect()))
    }

    /// The view of a resource, made where nobody has looked since it changed.
    pub(crate) fn view(
        &self,
        key: &str,
        nic_pool_addresses: Switch,
        make: impl FnOnce(&Entry) -> Value,
    ) -> Option<Arc<Value>> {
        let entry = self.entries.get(key)?;
        let mut views = self.views.borrow_mut();
        if views.nic_pool_addresses != Some(nic_pool_addresses) {
            views.made.clear();
            views.nic_pool_addresses = Some(nic_pool_addresses);
        }
        if let Some(view) = views.made.get(key) {
            return Some(Arc::clone(view));
        }
        drop(views);
        let view = Arc::new(make(entry));
        self.views.borrow_mut().made.insert(key.to_owned(), Arc::clone(&view));
        Some(view)
    }

    /// A view as shortened by `cut`; made once for each view.
    pub(crate) fn part_of_view(
        &self,
        key: &str,
        view: &Arc<Value>,
        cut: impl FnOnce(&mut Value),
    ) -> Arc<Value> {
        let mut views = self.views.borrow_mut();
        if let Some((of, part)) = views.parts.get(key)
            && Arc::ptr_eq(of, view)
        {
            return Arc::clone(part);
        }
        let mut part = Arc::clone(view);
        cut(Arc::make_mut(&mut part));
        views.parts.insert(key.to_owned(), (Arc::clone(view), Arc::clone(&part)));
        part
    }

    /// A resource or an element has changed, or who uses it: so has what its resource shows, and
    /// a network shows its subnets.
    fn forget_view(&mut self, id: &str) {
        let Views { made: views, parts, .. } = self.views.get_mut();
        parts.remove(id);
        views.remove(id);
        if let Some(above) = parent(id) {
            views.remove(above);
        }
    }

    fn unindex(&mut self, key: &str) -> BTreeSet<(String, Use)> {
        let mut touched = BTreeSet::new();
        for item in self.used.remove(key).unwrap_or_default() {
            if let Some(users) = self.users.get_mut(&item.target) {
                users.remove(&item);
                if users.is_empty() {
                    self.users.remove(&item.target);
                }
            }
            touched.insert((item.target.clone(), item));
        }
        for (subnet, address) in self.held.remove(key).unwrap_or_default() {
            if let Some(taken) = self.addresses.get_mut(&subnet) {
                taken.remove(&address);
            }
        }
        for name in self.named.remove(key).unwrap_or_default() {
            self.names.remove(&name);
        }
        touched
    }

    /// Who uses the resource or element `id`.
    pub(crate) fn users(&self, id: &str) -> impl Iterator<Item = &Use> {
        self.users.get(&id.to_lowercase()).into_iter().flatten()
    }

    /// Who has a private address of a subnet.
    pub(crate) fn owner_of_address(&self, subnet: &str, address: &IpAddr) -> Option<&str> {
        self.addresses.get(subnet)?.get(address).map(String::as_str)
    }

    /// The resource that has a DNS name or public address.
    pub(crate) fn owner_of_name(&self, name: &str) -> Option<&str> {
        self.names.get(&name.to_lowercase()).map(String::as_str)
    }

    /// Keys of one kind that start with `prefix`, in order.
    pub(crate) fn keys_of<'a>(
        &'a self,
        kind: &str,
        prefix: &'a str,
    ) -> impl Iterator<Item = &'a String> {
        let keys = self.kinds.get(kind);
        let from = keys.into_iter().flat_map(move |keys| keys.range(prefix.to_owned()..));
        from.take_while(move |key| key.starts_with(prefix))
    }

    /// How many resources of a kind the subscription of `key` has.
    pub(crate) fn count(&self, kind: &str, key: &str) -> usize {
        self.counts.get(&(kind.to_owned(), subscription_of(key))).copied().unwrap_or(0)
    }

    /// Keys of everything below a resource or group.
    pub(crate) fn keys_below(&self, key: &str) -> Vec<String> {
        let (start, end) = (format!("{key}/"), format!("{key}0"));
        self.entries.range(start..end).map(|(key, _)| key.clone()).collect()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &String> {
        self.entries.keys()
    }
}
