//! A Lease object and what may be done to it.

use serde_json::{Value, json};

/// A Lease, with every field it came with.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    object: Value,
}

/// What a holder writes.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// Who.
    pub holder: &'a str,
    /// For how long, in seconds.
    pub seconds: u64,
    /// The time, as `MicroTime`.
    pub now: &'a str,
}

impl Record {
    /// A Lease that does not exist yet.
    #[must_use]
    pub fn absent(namespace: &str, name: &str) -> Self {
        let object = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {},
        });
        Self { object }
    }

    /// Reads a Lease that the API server has.
    #[must_use]
    pub fn new(object: Value) -> Option<Self> {
        let record = Self { object };
        record.field("metadata", "resourceVersion")?.as_str()?;
        Some(record)
    }

    /// Whether it does not exist yet.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.field("metadata", "resourceVersion").is_none()
    }

    /// As JSON.
    #[must_use]
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// The JSON itself.
    #[must_use]
    pub fn into_object(self) -> Value {
        self.object
    }

    /// The holder; empty if there is none.
    #[must_use]
    pub fn holder(&self) -> &str {
        self.text("spec", "holderIdentity")
    }

    /// Its annotations as JSON; null if there are none.
    #[must_use]
    pub fn annotations(&self) -> Value {
        self.field("metadata", "annotations").cloned().unwrap_or_default()
    }

    /// The record with these annotations, if it is an object that has any.
    #[must_use]
    pub fn annotated(mut self, annotations: &Value) -> Self {
        if annotations.is_object() {
            self.object["metadata"]["annotations"] = annotations.clone();
        }
        self
    }

    /// The record with this holder. Taking it over counts as a transition.
    #[must_use]
    pub fn claimed(mut self, claim: &Claim<'_>) -> Self {
        let is_ours = self.holder() == claim.holder;
        let transitions = self.field("spec", "leaseTransitions").and_then(Value::as_u64);
        if !is_ours {
            let grown = if self.is_new() { 0 } else { transitions.unwrap_or(0).saturating_add(1) };
            self.set("acquireTime", json!(claim.now));
            self.set("leaseTransitions", json!(grown));
        }
        self.set("holderIdentity", json!(claim.holder));
        self.set("leaseDurationSeconds", json!(claim.seconds.max(1)));
        self.set("renewTime", json!(claim.now));
        self
    }

    /// The record without a holder.
    #[must_use]
    pub fn released(mut self, now: &str) -> Self {
        self.set("holderIdentity", json!(""));
        self.set("leaseDurationSeconds", json!(1));
        self.set("renewTime", json!(now));
        self
    }

    fn set(&mut self, field: &str, value: Value) {
        if !self.object["spec"].is_object() {
            self.object["spec"] = json!({});
        }
        self.object["spec"][field] = value;
    }

    /// By two keys, because `Value::pointer` allocates at each call.
    fn field(&self, part: &str, field: &str) -> Option<&Value> {
        self.object.get(part)?.get(field)
    }

    fn text(&self, part: &str, field: &str) -> &str {
        self.field(part, field).and_then(Value::as_str).unwrap_or("")
    }
}

/// When we first saw the record as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    revision: String,
    at_ms: u64,
}

impl Sighting {
    /// Keeps the time of the earlier sighting as long as the record has not changed.
    #[must_use]
    pub fn of(record: &Record, earlier: Option<Self>, now_ms: u64) -> Self {
        let revision = record.text("metadata", "resourceVersion");
        match earlier {
            Some(earlier) if earlier.revision == revision => earlier,
            _ => Self { revision: revision.to_string(), at_ms: now_ms },
        }
    }

    /// When the holder has been silent for too long: by its own duration, at least by ours.
    #[must_use]
    pub fn ends_ms(&self, record: &Record, lease_ms: u64) -> u64 {
        let theirs = record.field("spec", "leaseDurationSeconds").and_then(Value::as_u64);
        let lasts_ms = theirs.unwrap_or(0).saturating_mul(1000).max(lease_ms);
        self.at_ms.saturating_add(lasts_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim<'a>(holder: &'a str, now: &'a str) -> Claim<'a> {
        Claim { holder, seconds: 15, now }
    }

    fn stored(record: &Record, revision: &str) -> Record {
        let mut object = record.object.clone();
        object["metadata"]["resourceVersion"] = json!(revision);
        Record::new(object).unwrap()
    }

    #[test]
    fn taking_over_counts_and_renewing_does_not() {
        let first = Record::absent("n", "l").claimed(&claim("a", "t1"));
        assert_eq!(first.object["spec"]["leaseTransitions"], 0);
        let first = stored(&first, "1");
        let renewed = first.claimed(&claim("a", "t2"));
        assert_eq!(renewed.object["spec"]["acquireTime"], "t1");
        assert_eq!(renewed.object["spec"]["renewTime"], "t2");
        let taken = renewed.claimed(&claim("b", "t3"));
        assert_eq!(taken.object["spec"]["leaseTransitions"], 1);
        assert_eq!(taken.object["spec"]["acquireTime"], "t3");
        let free = taken.released("t4");
        assert_eq!((free.holder(), free.is_new()), ("", false));
    }

    #[test]
    fn fields_of_others_stay() {
        let body = json!({"metadata": {"resourceVersion": "4", "labels": {"x": "y"}},
            "spec": {"preferredHolder": "c"}});
        let next = Record::new(body).unwrap().claimed(&claim("a", "t"));
        assert_eq!(next.object["spec"]["preferredHolder"], "c");
        assert_eq!(next.object["metadata"]["labels"]["x"], "y");
    }

    #[test]
    fn numbers_beyond_all_bounds_stay_at_the_bound() {
        let body = json!({"metadata": {"resourceVersion": "4"}, "spec": {"holderIdentity": "b",
            "leaseTransitions": u64::MAX, "leaseDurationSeconds": u64::MAX}});
        let record = Record::new(body).unwrap();
        assert_eq!(Sighting::of(&record, None, 100).ends_ms(&record, 15_000), u64::MAX);
        let next = record.claimed(&claim("a", "t"));
        assert_eq!(next.object["spec"]["leaseTransitions"], u64::MAX);
    }

    #[test]
    fn silence_is_counted_from_the_last_change_seen() {
        let record = stored(&Record::absent("n", "l").claimed(&claim("a", "t")), "1");
        let seen = Sighting::of(&record, None, 100);
        let again = Sighting::of(&record, Some(seen), 5_000);
        assert_eq!(again.ends_ms(&record, 10_000), 15_100);
        assert_eq!(again.ends_ms(&record, 20_000), 20_100);
        let changed = Sighting::of(&stored(&record, "2"), Some(again), 6_000);
        assert_eq!(changed.ends_ms(&record, 10_000), 21_000);
    }
}
