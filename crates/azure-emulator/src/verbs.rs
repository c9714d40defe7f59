//! GET, LIST, PUT, PATCH and DELETE of any resource, and of elements that stand inside one.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::azure::{Azure, not_allowed};
use crate::contract::Form;
use crate::faults::FaultKind;
use crate::json::{list, merge, named, object, properties, same, text};
use crate::message::{Answer, Checked, Request, Shown, refusal, refuse};
use crate::operations::Change;
use crate::path::{Route, kind, last, parent, spelling};
use crate::store::Entry;

/// Collections that are part of their resource; the bool of each says if clients may write them.
const EMBEDDED: &[(&str, &str, Access)] = &[
    (kind::LB, "frontendIPConfigurations", Access::Read),
    (kind::LB, "backendAddressPools", Access::Write),
    (kind::LB, "loadBalancingRules", Access::Read),
    (kind::LB, "probes", Access::Read),
    (kind::LB, "inboundNatRules", Access::Write),
    (kind::LB, "inboundNatPools", Access::Read),
    (kind::LB, "outboundRules", Access::Read),
    (kind::NSG, "securityRules", Access::Write),
    (kind::NSG, "defaultSecurityRules", Access::Read),
    (kind::ROUTES, "routes", Access::Write),
    (kind::PLS, "privateEndpointConnections", Access::Write),
    (kind::NIC, "ipConfigurations", Access::Read),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// An element's place: the key of its resource and the collection in Azure's spelling.
struct Place {
    owner: String,
    collection: &'static str,
    access: Access,
}

/// Where the element or collection of elements that a route names stands.
fn place(route: &Route) -> Option<Place> {
    let (collection, above) = route.types.split_last()?;
    let owner_kind = format!("{}/{}", route.namespace, above.join("/")).to_lowercase();
    let (_, spelled, access) =
        EMBEDDED.iter().find(|(kind, name, _)| *kind == owner_kind && same(name, collection))?;
    let key = route.key();
    let owner = if route.is_collection() { key.rsplit_once('/')?.0 } else { parent(&key)? };
    Some(Place { owner: owner.to_owned(), collection: spelled, access: *access })
}

fn not_found(route: &Route) -> crate::message::Refusal {
    let names = route.names.join("/");
    let group = route.group.as_deref().unwrap_or("");
    let message = format!(
        "The Resource '{}/{names}' under resource group '{group}' was not found. For more details \
         please go to https://aka.ms/ARMResourceNotFoundFix",
        route.type_name()
    );
    refusal(404, "ResourceNotFound", message)
}

fn child_not_found(route: &Route) -> crate::message::Refusal {
    refusal(404, "NotFound", format!("Resource {} not found.", route.path))
}

impl Azure {
    pub(crate) fn get(&mut self, route: &Route) -> Checked<Answer> {
        self.check_group(route)?;
        let found = match place(route) {
            Some(place) => {
                let owner = self.view(&place.owner).ok_or_else(|| not_found(route))?;
                let elements = list(&owner, &["properties", place.collection]);
                let found = named(elements, route.name()).cloned();
                Arc::new(found.ok_or_else(|| child_not_found(route))?)
            }
            None => {
                let key = route.key();
                let value = self.view(&key).ok_or_else(|| not_found(route))?;
                self.seen(&key, value, hides_instance_view(route))
            }
        };
        let etag = text(&found, &["etag"]).to_owned();
        Ok(Answer::showing(200, Shown::One(found)).with_headers(vec![("ETag".to_owned(), etag)]))
    }

    pub(crate) fn list(&mut self, route: &Route) -> Checked<Answer> {
        self.check_group(route)?;
        if let Some(answer) = self.instance_view(route) {
            return Ok(answer);
        }
        if let Some(items) = self.gateway_table(route)? {
            let items: Vec<Arc<Value>> = items.into_iter().map(Arc::new).collect();
            return Ok(self.page(route, items, Some));
        }
        if let Some(place) = place(route) {
            let owner = self.view(&place.owner).ok_or_else(|| not_found(route))?;
            let items = list(&owner, &["properties", place.collection]);
            let items: Vec<Arc<Value>> = items.iter().cloned().map(Arc::new).collect();
            return Ok(self.page(route, items, Some));
        }
        let key = route.key();
        let above = key.rsplit_once('/').map_or("", |(above, _)| above);
        if !route.names.is_empty() && self.store.get(above).is_none() {
            return Err(not_found(route));
        }
        let mut keys = self.keys_to_list(route);
        let newest = match &self.fault {
            Some(FaultKind::StaleList { age_ms }) => Some(*age_ms),
            _ => (self.options.list_lag_ms > 0).then_some(self.options.list_lag_ms),
        };
        if let Some(age) = newest {
            let is_fresh = |e: &Entry| e.created_ms > 0 && e.created_ms + age > self.now_ms;
            keys.retain(|key| !self.store.get(key).is_some_and(is_fresh));
        }
        if route.query.contains_key("$filter") {
            keys.retain(|key| self.view(key).is_some_and(|value| passes_filter(route, &value)));
        }
        let hides = hides_instance_view(route);
        let shown = |key: String| Some(self.seen(&key, self.view(&key)?, hides));
        Ok(self.page(route, keys, shown))
    }

    /// A view, without a machine's instance view where that is to be hidden.
    fn seen(&self, key: &str, value: Arc<Value>, hides: bool) -> Arc<Value> {
        let inside = value.get("properties");
        if !hides || inside.is_none_or(|inside| inside.get("instanceView").is_none()) {
            return value;
        }
        self.store.part_of_view(key, &value, |part| {
            properties(part).shift_remove("instanceView");
        })
    }

    fn keys_to_list(&self, route: &Route) -> Vec<String> {
        let key = route.key();
        if let Some(keys) = self.scale_set_nics(route) {
            return keys;
        }
        let subscription = format!("/subscriptions/{}/", route.subscription).to_lowercase();
        let kind = route.kind();
        if route.group.is_none() {
            return self.store.keys_of(&kind, &subscription).cloned().collect();
        }
        let prefix = format!("{key}/");
        self.store.keys_of(&kind, &prefix).cloned().collect()
    }

    /// Cuts a list into pages; the link to the next one carries where it starts. Only what a page
    /// shows is looked at.
    fn page<T>(
        &self,
        route: &Route,
        mut items: Vec<T>,
        shown: impl Fn(T) -> Option<Arc<Value>>,
    ) -> Answer {
        let start = route.query.get("$skiptoken").and_then(|token| token.parse::<usize>().ok());
        let start = start.unwrap_or(0).min(items.len());
        let size = if self.options.page_size == 0 { items.len() } else { self.options.page_size };
        let all = items.len();
        let end = (start + size).min(all);
        items.truncate(end);
        items.drain(..start);
        let next = (end < all).then(|| {
            let version = route.query.get("api-version").map_or("2025-05-01", String::as_str);
            let mut link = format!(
                "{}{}?api-version={version}&$skipToken={end}",
                self.options.base_url, route.path
            );
            for key in ["$filter", "$expand"] {
                if let Some(value) = route.query.get(key) {
                    link.push_str(&format!("&{key}={}", value.replace(' ', "%20")));
                }
            }
            link
        });
        let items = items.into_iter().filter_map(shown).collect();
        Answer::showing(200, Shown::Page { items, next })
    }

    pub(crate) fn put(&mut self, route: &Route, request: &Request) -> Checked<Answer> {
        self.check_group(route)?;
        let mut body = match &request.body {
            Some(body @ Value::Object(_)) => body.clone(),
            _ => return refuse("InvalidRequestContent", "The request content is not an object."),
        };
        if let Some(place) = place(route) {
            return self.put_element(route, request, &place, body);
        }
        let key = route.key();
        if let Some(above) = parent(&key)
            && route.types.len() > 1
            && self.store.get(above).is_none()
        {
            let message = format!(
                "Failed to perform 'write' on resource(s) of type '{}', because the parent \
                 resource '{above}' could not be found.",
                route.type_name()
            );
            return Err(refusal(404, "ParentResourceNotFound", message));
        }
        let old = self.store.get(&key).cloned();
        if old.is_none() && route.kind() == kind::VMSS_VM {
            return Err(crate::compute::not_an_instance(route.name()));
        }
        // A virtual network shows its subnets, which are resources of their own.
        let network = if route.kind() == kind::VNET { self.view(&key) } else { None };
        let standing = network.as_deref().or(old.as_ref().map(|old| &old.value));
        self.admit(route, Form::Put, &mut body, standing)?;
        self.check_envelope(route, &body, old.as_ref())?;
        self.check_preconditions(request, old.as_ref())?;
        let body = match &old {
            Some(old) if old.kind.starts_with("microsoft.compute/") => {
                let mut merged = old.value.clone();
                merge(&mut merged, &body);
                merged
            }
            _ => body,
        };
        let status = if old.is_some() { 200 } else { 201 };
        let headers = self.write(route, body, old)?;
        self.written(&key, status, headers)
    }

    fn written(&self, key: &str, status: u16, headers: Vec<(String, String)>) -> Checked<Answer> {
        let shown = self.view_any(key).map_or(Shown::Nothing, Shown::One);
        Ok(Answer::showing(status, shown).with_headers(headers))
    }

    /// Checks and stores a whole resource; returns the headers of its operation.
    pub(crate) fn write(
        &mut self,
        route: &Route,
        body: Value,
        old: Option<Entry>,
    ) -> Checked<Vec<(String, String)>> {
        let key = route.key();
        self.check_overlap(&key)?;
        let mut entry = self.candidate(route, body, old.as_ref())?;
        let subnets = self.take_subnets(&mut entry)?;
        self.check(&key, &entry, old.as_ref())?;
        self.assign(&key, &mut entry, old.as_ref())?;
        self.supersede(&key);
        self.commit(&key, entry, old.as_ref());
        self.put_subnets(&key, subnets)?;
        Ok(self.start(&key, Change::Write, old))
    }

    /// A resource as it would be stored.
    fn candidate(&self, route: &Route, body: Value, old: Option<&Entry>) -> Checked<Entry> {
        let kind = route.kind();
        let id = old.map_or_else(|| self.id_of(route), |old| old.id.clone());
        let mut value = body;
        let map = object(&mut value);
        map.insert("id".to_owned(), json!(id));
        map.insert("name".to_owned(), json!(last(&id)));
        map.insert("type".to_owned(), json!(type_of(route, old)));
        if kind != kind::SUBNET {
            let standing = old.map(|old| text(&old.value, &["location"])).unwrap_or("");
            let location = if standing.is_empty() { &self.options.location } else { standing };
            crate::json::fill(map, "location", location);
        }
        let guid = old.map(|old| old.value["properties"]["resourceGuid"].clone());
        let inside = properties(&mut value);
        inside.shift_remove("provisioningState");
        inside.shift_remove("resourceGuid");
        if let Some(guid) = guid.filter(Value::is_string) {
            inside.insert("resourceGuid".to_owned(), guid);
        }
        inside.insert("provisioningState".to_owned(), json!("Succeeded"));
        let created_ms = old.map_or(self.now_ms, |old| old.created_ms);
        let mut entry = Entry { id, kind, value, created_ms, operation: None };
        self.prepare(&mut entry, old)?;
        Ok(entry)
    }

    /// The id of a new resource: the path, with Azure's spelling of types and the standing
    /// spelling of the resource above.
    fn id_of(&self, route: &Route) -> String {
        let above = parent(&route.path).and_then(|above| self.store.find(above));
        match above {
            Some(above) => {
                let kind = route.types.last().map_or("", |kind| spelling(kind));
                format!("{}/{kind}/{}", above.id, route.name())
            }
            None => spelled_path(route),
        }
    }

    /// Stores a checked resource and gives new ETags to all that changed with it.
    pub(crate) fn commit(&mut self, key: &str, mut entry: Entry, old: Option<&Entry>) {
        entry.value["etag"] = json!(self.guids.etag());
        if entry.kind.starts_with("microsoft.network/")
            && entry.value["properties"]["resourceGuid"].is_null()
        {
            let guid = self.guids.guid();
            properties(&mut entry.value).insert("resourceGuid".to_owned(), json!(guid));
        }
        let touched = self.store.insert(key.to_owned(), entry);
        self.hold_addresses(key, old, &touched);
        self.touch(&touched);
        self.after_write(key, old);
    }

    fn put_element(
        &mut self,
        route: &Route,
        request: &Request,
        place: &Place,
        body: Value,
    ) -> Checked<Answer> {
        if place.access == Access::Read {
            return Err(not_allowed("PUT", route));
        }
        let owner = self.store.get(&place.owner).cloned().ok_or_else(|| not_found(route))?;
        let mut value = owner.value.clone();
        let elements = properties(&mut value).entry(place.collection).or_insert_with(|| json!([]));
        if !elements.is_array() {
            *elements = json!([]);
        }
        let elements = elements.as_array_mut().expect("made a list just above");
        let at = elements.iter().position(|item| same(text(item, &["name"]), route.name()));
        let mut element = body;
        self.admit(route, Form::Put, &mut element, at.map(|at| &elements[at]))?;
        self.check_preconditions(request, at.is_some().then_some(&owner))?;
        let name = at.map_or(route.name(), |at| text(&elements[at], &["name"])).to_owned();
        object(&mut element).insert("name".to_owned(), json!(name));
        match at {
            Some(at) => elements[at] = element,
            None => elements.push(element),
        }
        let above = route_above(route, &owner);
        let headers = self.write(&above, value, Some(owner))?;
        self.written(&route.path, if at.is_some() { 200 } else { 201 }, headers)
    }

    pub(crate) fn patch(&mut self, route: &Route, request: &Request) -> Checked<Answer> {
        self.check_group(route)?;
        let key = route.key();
        let old = self.store.get(&key).cloned().ok_or_else(|| not_found(route))?;
        let mut body = request.body.clone().unwrap_or(json!({}));
        self.admit(route, Form::Patch, &mut body, None)?;
        self.check_preconditions(request, Some(&old))?;
        let mut value = old.value.clone();
        for (name, part) in body.as_object().into_iter().flatten() {
            match (name.as_str(), value.get_mut(name)) {
                // Tags are replaced as a whole; what else there is, is merged.
                (_, Some(standing)) if name != "tags" && part.is_object() => {
                    merge(standing, part);
                }
                _ => value[name.as_str()] = part.clone(),
            }
        }
        let headers = self.write(route, value, Some(old))?;
        self.written(&key, 200, headers)
    }

    pub(crate) fn delete(&mut self, route: &Route, request: &Request) -> Checked<Answer> {
        self.check_group(route)?;
        if let Some(place) = place(route) {
            return self.delete_element(route, request, &place);
        }
        let key = route.key();
        let Some(old) = self.store.get(&key).cloned() else {
            return Ok(Answer::new(204, None));
        };
        self.check_preconditions(request, Some(&old))?;
        self.check_overlap(&key)?;
        self.check_removal(&key, &old)?;
        self.supersede(&key);
        let headers = self.start(&key, Change::Delete, Some(old));
        Ok(removed(headers))
    }

    fn delete_element(
        &mut self,
        route: &Route,
        request: &Request,
        place: &Place,
    ) -> Checked<Answer> {
        if place.access == Access::Read {
            return Err(not_allowed("DELETE", route));
        }
        let Some(owner) = self.store.get(&place.owner).cloned() else {
            return Ok(Answer::new(204, None));
        };
        let mut value = owner.value.clone();
        let elements = crate::json::list_mut(&mut value, place.collection);
        let Some(elements) = elements.filter(|items| named(items, route.name()).is_some()) else {
            return Ok(Answer::new(204, None));
        };
        self.check_preconditions(request, Some(&owner))?;
        elements.retain(|item| !same(text(item, &["name"]), route.name()));
        let above = route_above(route, &owner);
        let mut headers = self.write(&above, value, Some(owner))?;
        // The operation of a DELETE has a Location to poll as well.
        if let Some((_, url)) = headers.iter().find(|(name, _)| name == "Azure-AsyncOperation") {
            let url = url.replace("/operations/", "/operationResults/");
            headers.push(("Location".to_owned(), url));
        }
        Ok(removed(headers))
    }
}

fn removed(headers: Vec<(String, String)>) -> Answer {
    let status = if headers.is_empty() { 200 } else { 202 };
    Answer::new(status, None).with_headers(headers)
}

/// The route of the resource an element stands in.
fn route_above(route: &Route, owner: &Entry) -> Route {
    let mut above = route.clone();
    above.types.pop();
    above.names.pop();
    above.path = owner.id.clone();
    above
}

fn type_of(route: &Route, old: Option<&Entry>) -> String {
    let standing = old.map(|old| text(&old.value, &["type"])).unwrap_or("");
    if standing.is_empty() { route.type_name() } else { standing.to_owned() }
}

fn spelled_path(route: &Route) -> String {
    let group = route.group.as_deref().unwrap_or("");
    let mut id = format!(
        "/subscriptions/{}/resourceGroups/{group}/providers/{}",
        route.subscription,
        spelling(&route.namespace)
    );
    for (kind, name) in route.types.iter().zip(&route.names) {
        id.push_str(&format!("/{}/{name}", spelling(kind)));
    }
    id
}

impl Azure {
    fn check_preconditions(&self, request: &Request, old: Option<&Entry>) -> Checked {
        let failed = |message: String| Err(refusal(412, "PreconditionFailed", message));
        let standing = old.map(|old| text(&old.value, &["etag"]));
        if let Some(wanted) = &request.if_match
            && !wanted.is_empty()
            && old.is_none_or(|old| self.is_guarded(old))
        {
            match standing {
                Some(standing) if wanted == "*" || wanted == standing => {}
                Some(standing) => {
                    return failed(format!(
                        "Precondition failed for resource {}. The resource ETag ({standing}) does \
                         not match the provided ETag ({wanted}).",
                        old.map_or("", |old| old.id.as_str())
                    ));
                }
                None => return failed(format!("There is no resource with the ETag {wanted}.")),
            }
        }
        if request.if_none_match.as_deref() == Some("*") && old.is_some() {
            return failed("The resource exists already.".to_owned());
        }
        Ok(())
    }

    /// Whether `If-Match` is checked on a resource. Of these two kinds no schema or page says it
    /// (docs/dev/azure-facts.md, Assumptions).
    fn is_guarded(&self, entry: &Entry) -> bool {
        match entry.kind.as_str() {
            kind::PLS => self.options.private_link_etag.is_on(),
            kind::VMSS
                if same(text(&entry.value, &["properties", "orchestrationMode"]), "Flexible") =>
            {
                self.options.flexible_model_etag.is_on()
            }
            _ => true,
        }
    }
}

/// Compute sends an instance view only on request.
fn hides_instance_view(route: &Route) -> bool {
    let asked = |x: &String| x.to_lowercase().contains("instanceview");
    matches!(route.kind().as_str(), kind::VMSS_VM | kind::VM)
        && !route.query.get("$expand").is_some_and(asked)
        && route.query.get("statusonly").is_none_or(|x| x != "true")
}

/// `$filter='virtualMachineScaleSet/id' eq '…'`, the one filter clients use.
fn passes_filter(route: &Route, value: &Value) -> bool {
    let Some(filter) = route.query.get("$filter") else { return true };
    let quoted: Vec<&str> = filter.split('\'').skip(1).step_by(2).collect();
    match quoted.as_slice() {
        [field, id] if same(field, "virtualMachineScaleSet/id") => {
            same(text(value, &["properties", "virtualMachineScaleSet", "id"]), id)
        }
        _ => true,
    }
}
