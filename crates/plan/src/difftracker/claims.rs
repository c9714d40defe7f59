//! Who wants an address where: slices and Pods are numbered sources, locations are numbers.

use super::homes::Homes;
use super::number::{self, Number};
use std::net::IpAddr;
use std::sync::Arc;

/// One source wants an address at one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub source: Number,
    pub home: Number,
}

/// The one location that an address with these claims is to be at. Where sources disagree, the
/// address was taken over by another Pod and some source lags behind: the one that was written last
/// is right.
pub(super) fn home(claims: &[Claim], sources: &Sources, homes: &Homes) -> Option<IpAddr> {
    let rank = |claim: &&Claim| (sources.revision(claim.source), homes.address(claim.home));
    claims.iter().max_by_key(rank).map(|claim| homes.address(claim.home))
}

/// Numbered sources of claims.
#[derive(Debug, Default)]
pub(super) struct Sources {
    all: Vec<(Arc<str>, u64)>,
    free: Vec<Number>,
}

impl Sources {
    /// A number for a source of addresses of a gateway service.
    pub fn open(&mut self, owner: Arc<str>, revision: &str) -> Number {
        let source = (owner, revision.parse().unwrap_or(0));
        if let Some(number) = self.free.pop() {
            self.all[number::index(number)] = source;
            return number;
        }
        self.all.push(source);
        number::of(self.all.len() - 1)
    }

    /// The same source, written anew.
    pub fn renew(&mut self, number: Number, revision: &str) -> Number {
        self.all[number::index(number)].1 = revision.parse().unwrap_or(0);
        number
    }

    /// Gives a number back.
    pub fn free(&mut self, number: Number) {
        self.free.push(number);
    }

    pub fn owner(&self, number: Number) -> &Arc<str> {
        &self.all[number::index(number)].0
    }

    fn revision(&self, number: Number) -> u64 {
        self.all[number::index(number)].1
    }
}
