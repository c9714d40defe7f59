//! Each address on both sides: who wants it where, and where the table has it.

use super::claims::Claim;
use super::number::Number;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// All addresses, wanted or seen.
#[derive(Debug, Default)]
pub(super) struct Sides {
    by_address: BTreeMap<IpAddr, Usual>,
    /// Addresses with several claims or locations; they have neither in `by_address`.
    more: BTreeMap<IpAddr, More>,
}

/// What nearly every address has: one claim and one location. There are many of them.
#[derive(Clone, Copy, Debug, Default)]
struct Usual {
    claim: Option<Claim>,
    seen: Option<Number>,
}

const _: () = assert!(size_of::<Usual>() == 12);

/// What an address can have.
#[derive(Clone, Debug, Default)]
struct More {
    claims: Vec<Claim>,
    seen: Vec<Number>,
}

impl Sides {
    /// Who wants an address.
    pub fn claims(&self, address: IpAddr) -> &[Claim] {
        match self.by_address.get(&address) {
            Some(Usual { claim: Some(claim), .. }) => std::slice::from_ref(claim),
            Some(_) if !self.more.is_empty() => {
                self.more.get(&address).map_or(&[], |more| &more.claims)
            }
            Some(_) | None => &[],
        }
    }

    /// Locations that have an address.
    pub fn seen(&self, address: IpAddr) -> &[Number] {
        match self.by_address.get(&address) {
            Some(Usual { seen: Some(location), .. }) => std::slice::from_ref(location),
            Some(_) if !self.more.is_empty() => {
                self.more.get(&address).map_or(&[], |more| &more.seen)
            }
            Some(_) | None => &[],
        }
    }

    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.by_address.keys().copied()
    }

    /// Somebody wants an address.
    pub fn claim(&mut self, address: IpAddr, claim: Claim) {
        self.change(address, |more| {
            if !more.claims.contains(&claim) {
                more.claims.push(claim);
            }
        });
    }

    /// A source wants an address no longer; says whether it is known at all.
    pub fn withdraw(&mut self, address: IpAddr, source: Number) -> bool {
        let known = self.by_address.contains_key(&address);
        if known {
            self.change(address, |more| more.claims.retain(|claim| claim.source != source));
        }
        known
    }

    /// Nobody wants any address.
    pub fn withdraw_all(&mut self) {
        let addresses: Vec<IpAddr> = self.addresses().collect();
        for address in addresses {
            self.change(address, |more| more.claims.clear());
        }
    }

    /// A location has an address.
    pub fn see(&mut self, address: IpAddr, location: Number) {
        self.change(address, |more| {
            if !more.seen.contains(&location) {
                more.seen.push(location);
            }
        });
    }

    /// A location no longer has an address; says whether it is known at all.
    pub fn lose(&mut self, address: IpAddr, location: Number) -> bool {
        let known = self.by_address.contains_key(&address);
        if known {
            self.change(address, |more| more.seen.retain(|at| *at != location));
        }
        known
    }

    /// Forgets an address that nobody wants and no location has.
    pub fn forget_bare(&mut self, address: IpAddr) {
        if self.claims(address).is_empty() && self.seen(address).is_empty() {
            self.by_address.remove(&address);
        }
    }

    fn change(&mut self, address: IpAddr, change: impl FnOnce(&mut More)) {
        let usual = self.by_address.entry(address).or_default();
        let mut more = self.more.remove(&address).unwrap_or_else(|| More {
            claims: usual.claim.into_iter().collect(),
            seen: usual.seen.into_iter().collect(),
        });
        change(&mut more);
        *usual = Usual::default();
        match (more.claims.as_slice(), more.seen.as_slice()) {
            ([] | [_], [] | [_]) => {
                let (claim, seen) = (more.claims.first().copied(), more.seen.first().copied());
                *usual = Usual { claim, seen };
            }
            _ => {
                self.more.insert(address, more);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::number;
    use super::*;

    fn claim(source: usize, home: usize) -> Claim {
        Claim { source: number::of(source), home: Some(number::of(home)) }
    }

    #[test]
    fn an_address_has_what_was_added_and_not_taken_away() {
        let address = IpAddr::from([10, 0, 0, 1]);
        let mut sides = Sides::default();
        assert!(!sides.withdraw(address, number::of(0)) && !sides.lose(address, number::of(0)));
        sides.claim(address, claim(0, 5));
        sides.claim(address, claim(0, 5));
        assert_eq!(sides.claims(address), [claim(0, 5)]);
        assert_eq!(sides.seen(address), []);
        sides.see(address, number::of(7));
        sides.claim(address, claim(1, 6));
        sides.see(address, number::of(8));
        assert_eq!(sides.claims(address), [claim(0, 5), claim(1, 6)]);
        assert_eq!(sides.seen(address), [number::of(7), number::of(8)]);
        assert!(sides.lose(address, number::of(7)));
        assert!(sides.withdraw(address, number::of(0)));
        assert!(sides.more.is_empty(), "one of each needs no more room");
        assert_eq!(sides.claims(address), [claim(1, 6)]);
        assert_eq!(sides.seen(address), [number::of(8)]);
        sides.forget_bare(address);
        assert_eq!(sides.addresses().count(), 1);
        sides.withdraw_all();
        sides.lose(address, number::of(8));
        sides.forget_bare(address);
        assert_eq!(sides.addresses().count(), 0);
    }
}
