//! Who wants an address where: slices and Pods are numbered sources, locations are numbers.

use super::homes::Homes;
use std::net::IpAddr;
use std::sync::Arc;

/// One source wants an address at one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub source: u32,
    pub home: u32,
}

/// All claims of one address; nearly always one.
#[derive(Debug, Default)]
pub(super) enum Claims {
    #[default]
    None,
    One(Claim),
    More(Box<[Claim]>),
}

impl Claims {
    pub fn iter(&self) -> std::slice::Iter<'_, Claim> {
        match self {
            Self::None => [].iter(),
            Self::One(claim) => std::slice::from_ref(claim).iter(),
            Self::More(claims) => claims.iter(),
        }
    }

    pub fn add(&mut self, claim: Claim) {
        match self {
            Self::None => *self = Self::One(claim),
            Self::One(one) if *one == claim => {}
            Self::One(one) => *self = Self::More(Box::new([*one, claim])),
            Self::More(claims) if claims.contains(&claim) => {}
            Self::More(claims) => *claims = claims.iter().copied().chain([claim]).collect(),
        }
    }

    pub fn remove(&mut self, source: u32) {
        match self {
            Self::One(claim) if claim.source == source => *self = Self::None,
            Self::None | Self::One(_) => {}
            Self::More(claims) => {
                let left: Vec<Claim> =
                    claims.iter().copied().filter(|claim| claim.source != source).collect();
                *self = match left.as_slice() {
                    [] => Self::None,
                    [one] => Self::One(*one),
                    _ => Self::More(left.into_boxed_slice()),
                };
            }
        }
    }

    /// The one location the address is to be at. Where sources disagree, the address was taken
    /// over by another Pod and some source lags behind: the one that was written last is right.
    pub fn home(&self, sources: &Sources, homes: &Homes) -> Option<IpAddr> {
        let rank = |claim: &&Claim| (sources.revision(claim.source), homes.address(claim.home));
        self.iter().max_by_key(rank).map(|claim| homes.address(claim.home))
    }
}

/// Numbered sources of claims.
#[derive(Debug, Default)]
pub(super) struct Sources {
    all: Vec<(Arc<str>, u64)>,
    free: Vec<u32>,
}

impl Sources {
    /// A number for a source of addresses of a gateway service.
    pub fn open(&mut self, owner: Arc<str>, revision: &str) -> u32 {
        let source = (owner, revision.parse().unwrap_or(0));
        if let Some(number) = self.free.pop() {
            self.all[number as usize] = source;
            return number;
        }
        self.all.push(source);
        u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX)
    }

    /// Gives a number back.
    pub fn free(&mut self, number: u32) {
        self.free.push(number);
    }

    pub fn owner(&self, number: u32) -> Arc<str> {
        Arc::clone(&self.all[number as usize].0)
    }

    fn revision(&self, number: u32) -> u64 {
        self.all[number as usize].1
    }
}
