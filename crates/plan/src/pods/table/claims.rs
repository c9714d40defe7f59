//! Who wants an address where: slices and Pods are numbered sources, locations are numbers.

use super::homes::Homes;
use super::number::{self, Number};
use std::net::IpAddr;
use std::sync::Arc;

/// One source wants an address at one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub source: Number,
    /// `None`: the source lists the address, and it is not to be published.
    pub home: Option<Number>,
}

/// The one location that an address with these claims is to be at. Where sources disagree, the
/// address was taken over by another Pod and some source lags behind: the one that was written last
/// is right.
pub(super) fn home<'a>(
    claims: impl Iterator<Item = &'a Claim>,
    sources: &Sources,
    homes: &Homes,
) -> Option<IpAddr> {
    let published = claims.filter_map(|claim| Some((claim.source, homes.address(claim.home?))));
    let last = published.max_by_key(|(source, home)| (sources.revision(*source), *home));
    last.map(|(_, home)| home)
}

/// What claims addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An EndpointSlice.
    Slice,
    /// A Pod, as its status tells.
    Pod,
}

#[derive(Debug)]
struct Source {
    /// The gateway service whose addresses it brings.
    owner: Arc<str>,
    namespace: Arc<str>,
    revision: u64,
    kind: Kind,
}

/// Numbered sources of claims.
#[derive(Debug, Default)]
pub(super) struct Sources {
    all: Vec<Source>,
    free: Vec<Number>,
}

impl Sources {
    /// A number for a source of addresses of a gateway service: its kind, its namespace and its
    /// revision.
    pub fn open(
        &mut self,
        owner: Arc<str>,
        kind: Kind,
        namespace: &Arc<str>,
        revision: &str,
    ) -> Number {
        let namespace = Arc::clone(namespace);
        let source = Source { owner, namespace, revision: revision.parse().unwrap_or(0), kind };
        if let Some(number) = self.free.pop() {
            self.all[number::index(number)] = source;
            return number;
        }
        self.all.push(source);
        number::of(self.all.len() - 1)
    }

    /// The same source, written anew.
    pub fn renew(&mut self, number: Number, revision: &str) -> Number {
        self.all[number::index(number)].revision = revision.parse().unwrap_or(0);
        number
    }

    /// Gives a number back.
    pub fn free(&mut self, number: Number) {
        self.free.push(number);
    }

    pub fn owner(&self, number: Number) -> &Arc<str> {
        &self.all[number::index(number)].owner
    }

    pub fn namespace(&self, number: Number) -> &Arc<str> {
        &self.all[number::index(number)].namespace
    }

    pub fn is_pod(&self, number: Number) -> bool {
        self.all[number::index(number)].kind == Kind::Pod
    }

    fn revision(&self, number: Number) -> u64 {
        self.all[number::index(number)].revision
    }
}
