//! Identities. Azure compares names and ids ignoring letter case, Kubernetes does not.

use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// How every id begins, in any letter case.
const IDS_BEGIN: &str = "/subscriptions/";

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident($held:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
        pub struct $name($held);

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                // Maps are walked side by side whose keys are the same values in memory.
                if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl $name {
            /// Takes the text as it stands.
            #[must_use]
            pub fn new(text: impl AsRef<str>) -> Self {
                Self(<$held>::from(Box::<str>::from(text.as_ref())))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Whether another value holds the same text in memory.
            #[must_use]
            pub fn is_shared(&self) -> bool {
                Arc::strong_count(&self.0) > 1
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

text_id! {
    /// `metadata.name` of a Node. Every endpoint has one: it is a thin pointer.
    NodeName(Arc<Box<str>>)
}
text_id! {
    /// An Azure ETag, quotes and all, as it came.
    Etag(Arc<str>)
}

/// `metadata.uid` of a Service: what makes a Service the same one.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceUid {
    /// The first bytes of the text as a number, which has the order of texts. UIDs are looked up by
    /// the hundred thousand in a plan, and hardly any two begin alike.
    head: u64,
    text: Arc<str>,
}

impl ServiceUid {
    /// Takes the text as it stands.
    #[must_use]
    pub fn new(text: impl AsRef<str>) -> Self {
        let text: Arc<str> = Arc::from(text.as_ref());
        let mut head = [0; 8];
        head.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte);
        Self { head: u64::from_be_bytes(head), text }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether another value holds the same text in memory.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.text) > 1
    }

    /// The base of every name that the Service has in Azure: `a` and the UID without dashes, cut to
    /// 32 characters, which loses the UID's last hexadecimal digit.
    #[must_use]
    pub fn base_name(&self) -> String {
        let mut name = String::with_capacity(33);
        name.push('a');
        self.text.split('-').for_each(|part| name.push_str(part));
        name.truncate(32);
        name
    }
}

impl Ord for ServiceUid {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match self.head.cmp(&other.head) {
            // Maps are walked side by side whose keys are the same values in memory.
            Ordering::Equal if Arc::ptr_eq(&self.text, &other.text) => Ordering::Equal,
            Ordering::Equal => self.text.cmp(&other.text),
            unequal => unequal,
        }
    }
}

impl PartialOrd for ServiceUid {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for ServiceUid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for ServiceUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServiceUid").field(&self.text).finish()
    }
}

impl fmt::Display for ServiceUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Borrow<str> for ServiceUid {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl Serialize for ServiceUid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// Namespace and name of a Service, printed as `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceName {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name within the namespace.
    pub name: Arc<str>,
}

impl ServiceName {
    /// Puts the two together.
    #[must_use]
    pub fn new(namespace: impl AsRef<str>, name: impl AsRef<str>) -> Self {
        Self { namespace: Arc::from(namespace.as_ref()), name: Arc::from(name.as_ref()) }
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Serialize for ServiceName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The name of a resource group, compared ignoring case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Group(Arc<str>);

impl Group {
    /// Folds the name to lower case.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(Arc::from(name.trim().to_lowercase()))
    }

    /// The folded name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An Azure resource id. Keeps the letters it came with; compares, orders and hashes folded.
#[derive(Clone)]
pub struct ResourceId {
    text: Arc<str>,
}

/// A JSON value with its ids in lower case: Azure takes ids for the same in any letter case, and
/// answers in other letters than it was asked in. Every id begins with `/subscriptions/`.
#[must_use]
pub fn fold_ids(value: Value) -> Value {
    let is_id = |text: &str| {
        text.get(..IDS_BEGIN.len()).is_some_and(|head| head.eq_ignore_ascii_case(IDS_BEGIN))
    };
    match value {
        Value::String(text) if is_id(&text) => Value::String(text.to_lowercase()),
        Value::Array(all) => all.into_iter().map(fold_ids).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (key, fold_ids(value))).collect()
        }
        other => other,
    }
}

impl ResourceId {
    /// The text is not checked: what Azure sent is carried as it came.
    #[must_use]
    pub fn new(text: impl AsRef<str>) -> Self {
        Self { text: Arc::from(text.as_ref().trim_end_matches('/')) }
    }

    /// `/subscriptions/{subscription}/resourceGroups/{group}/providers/{kind}/{name}`; `kind` has
    /// its namespace: `Microsoft.Network/loadBalancers`.
    #[must_use]
    pub fn of(subscription: &str, group: &Group, kind: &str, name: &str) -> Self {
        let parts = [
            IDS_BEGIN,
            subscription,
            "/resourceGroups/",
            group.as_str(),
            "/providers/",
            kind,
            "/",
            name,
        ];
        Self::new(parts.concat())
    }

    /// The id of a child: `{self}/{kind}/{name}`.
    #[must_use]
    pub fn child(&self, kind: &str, name: &str) -> Self {
        Self::new([&*self.text, "/", kind, "/", name].concat())
    }

    /// Whether this is the id that [`Self::child`] makes.
    #[must_use]
    pub fn is_child(&self, of: &Self, kind: &str, name: &str) -> bool {
        if !self.text.is_ascii() || !of.text.is_ascii() {
            return *self == of.child(kind, name);
        }
        let same = |rest: &str, part: &str| rest.eq_ignore_ascii_case(part);
        let cut = |rest: &'_ str, part: &str| {
            let (head, last) = rest.split_at_checked(rest.len().checked_sub(part.len())?)?;
            same(last, part).then_some(head.len())
        };
        let text = &*self.text;
        let step = |end: usize, part: &str| cut(&text[..end], part);
        let end = step(text.len(), name).and_then(|end| step(end, "/"));
        let end = end.and_then(|end| step(end, kind)).and_then(|end| step(end, "/"));
        end.is_some_and(|end| same(&text[..end], &of.text))
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// In lower case. It is made anew each time: there are many ids, and few are looked into.
    #[must_use]
    pub fn folded(&self) -> String {
        self.text.to_lowercase()
    }

    /// The last segment, as it was written.
    #[must_use]
    pub fn name(&self) -> &str {
        let from = self.text.bytes().rposition(|byte| byte == b'/').map_or(0, |at| at + 1);
        &self.text[from..]
    }

    /// Without subscription, group and provider, as in `loadBalancers/kubernetes`.
    #[must_use]
    pub fn short(&self) -> &str {
        const PROVIDERS: &str = "/providers/";
        // Azure writes ids in letters of either case.
        let at = self.text.to_ascii_lowercase().rfind(PROVIDERS);
        let rest = &self.text[at.map_or(0, |at| at + PROVIDERS.len())..];
        rest.split_once('/').map_or(rest, |(_, short)| short)
    }

    /// The resource two segments up; `None` for an id with fewer than three segments.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let (head, _) = self.text.rsplit_once('/')?;
        let (head, _) = head.rsplit_once('/')?;
        (!head.is_empty()).then(|| Self::new(head))
    }

    /// The resource group in the id, if it has one.
    #[must_use]
    pub fn group(&self) -> Option<Group> {
        self.segment_after("resourcegroups").map(Group::new)
    }

    /// Whether the id is one of this resource group.
    #[must_use]
    pub fn is_in(&self, group: &Group) -> bool {
        match self.segment_after("resourcegroups") {
            Some(name) if name.is_ascii() => name.trim().eq_ignore_ascii_case(group.as_str()),
            Some(name) => Group::new(name) == *group,
            None => false,
        }
    }

    /// The subscription in the id, if it has one.
    #[must_use]
    pub fn subscription(&self) -> Option<String> {
        self.segment_after("subscriptions").map(str::to_lowercase)
    }

    fn segment_after(&self, key: &str) -> Option<&str> {
        let mut segments = self.text.split('/');
        segments.find(|segment| segment.eq_ignore_ascii_case(key))?;
        segments.next()
    }

    /// Compares as if both were in lower case.
    fn compare(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.text, &other.text) {
            return Ordering::Equal;
        }
        let (a, b) = (self.text.as_bytes(), other.text.as_bytes());
        let mut from = 0;
        // Ids are alike at the beginning: most bytes are passed over without folding them.
        while let Some(at) = first_difference(&a[from..], &b[from..]) {
            let at = from + at;
            if !a[at].is_ascii() || !b[at].is_ascii() {
                return self.folded().cmp(&other.folded());
            }
            match a[at].to_ascii_lowercase().cmp(&b[at].to_ascii_lowercase()) {
                Ordering::Equal => from = at + 1,
                unequal => return unequal,
            }
        }
        a.len().cmp(&b.len())
    }
}

/// Where two texts first differ, as far as both go. Whole pieces are compared at once: planning
/// looks up ids by the million, and all of them begin alike.
fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    const PIECE: usize = 16;
    let pieces = a.as_chunks::<PIECE>().0.iter().zip(b.as_chunks::<PIECE>().0);
    let mut from = 0;
    for (a, b) in pieces {
        let difference = u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b);
        if difference != 0 {
            return Some(from + difference.trailing_zeros() as usize / 8);
        }
        from += PIECE;
    }
    let rest = a[from..].iter().zip(&b[from..]);
    rest.into_iter().position(|(a, b)| a != b).map(|at| from + at)
}

/// Whether the last bytes of two texts tell that these are not the same in lower case.
fn end_otherwise(a: &str, b: &str) -> bool {
    let end = |text: &str| text.as_bytes().last_chunk::<8>().copied().map(u64::from_ne_bytes);
    let (Some(a), Some(b)) = (end(a), end(b)) else { return false };
    let each = |byte: u8| u64::from_ne_bytes([byte; 8]);
    // The two cases of a letter differ in one bit.
    (a | b) & each(0x80) == 0 && (a ^ b) & !each(0x20) != 0
}

impl PartialEq for ResourceId {
    fn eq(&self, other: &Self) -> bool {
        // Ids that are not the same mostly end otherwise, too.
        Arc::ptr_eq(&self.text, &other.text)
            || (!end_otherwise(&self.text, &other.text) && self.compare(other).is_eq())
    }
}
impl Eq for ResourceId {}
impl PartialOrd for ResourceId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for ResourceId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other)
    }
}
impl Hash for ResourceId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.folded().hash(state);
    }
}
impl fmt::Debug for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}
impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
impl Serialize for ResourceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_name_loses_the_last_digit_of_the_uid() {
        let uid = ServiceUid::new("00000001-1111-4222-8333-0123456789ab");
        assert_eq!(uid.base_name(), "a000000011111422283330123456789a");
    }

    #[test]
    fn uids_are_ordered_and_printed_as_their_texts() {
        let texts = ["", "a", "a\0", "ab", "abcdefgh", "abcdefghi", "abcdefgi", "b", "é", "éa"];
        for (a, b) in texts.iter().flat_map(|a| texts.iter().map(move |b| (a, b))) {
            let (x, y) = (ServiceUid::new(a), ServiceUid::new(b));
            assert_eq!(x.cmp(&y), a.cmp(b), "{a} {b}");
            assert_eq!(x == y, a == b, "{a} {b}");
        }
        assert_eq!(format!("{0} {0:?}", ServiceUid::new("u")), "u ServiceUid(\"u\")");
    }

    #[test]
    fn resource_ids_compare_folded_and_print_as_written() {
        let a = ResourceId::new("/subscriptions/S/resourceGroups/RG/providers/X/y/Z/");
        let b = ResourceId::new("/SUBSCRIPTIONS/s/resourcegroups/rg/providers/x/Y/z");
        assert_eq!(a, b);
        assert_eq!(a.as_str(), "/subscriptions/S/resourceGroups/RG/providers/X/y/Z");
        assert_eq!(a.group(), Some(Group::new("rg")));
        assert_eq!(a.subscription().as_deref(), Some("s"));
        assert_eq!(a.name(), "Z");
        assert_eq!((a.short(), b.short()), ("y/Z", "Y/z"));
        assert_eq!(ResourceId::new(a.as_str().to_uppercase()).short(), "Y/Z");
        assert!(a.is_in(&Group::new("Rg")) && !a.is_in(&Group::new("r")));
        assert!(!ResourceId::new("/subscriptions/s").is_in(&Group::new("rg")));
        let child = a.child("kinds", "Name");
        assert!(child.is_child(&b, "KINDS", "name"));
        for (of, kind, name) in [(&b, "kinds", "ame"), (&b, "kind", "name"), (&child, "k", "name")]
        {
            assert!(!child.is_child(of, kind, name), "{of} {kind} {name}");
        }
        assert!(a.child("kinds", "É").is_child(&b, "kinds", "é"));
    }

    #[test]
    fn resource_ids_differ_wherever_they_do() {
        let text = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/x/y";
        for at in 0..text.len() {
            let other = format!("{}!{}", &text[..at], &text[at + 1..]);
            let (a, b) = (ResourceId::new(text), ResourceId::new(&other));
            assert_eq!(a.cmp(&b), text.to_lowercase().cmp(&other.to_lowercase()), "{other}");
            assert_ne!(a, b);
        }
    }

    #[test]
    fn resource_ids_are_ordered_as_their_lower_case_texts() {
        let texts = [
            "",
            "/a",
            "/A/b",
            "/a/B",
            "/ab",
            "/a_b",
            "/aZ",
            "/Äb",
            "/äB",
            "/K",
            "/\u{212a}",
            "/a/Bc",
        ];
        for (a, b) in texts.iter().flat_map(|a| texts.iter().map(move |b| (a, b))) {
            let (x, y) = (ResourceId::new(a), ResourceId::new(b));
            assert_eq!(x.cmp(&y), a.to_lowercase().cmp(&b.to_lowercase()), "{a} {b}");
            assert_eq!(x == y, a.to_lowercase() == b.to_lowercase(), "{a} {b}");
        }
    }
}
