//! UIDs and random name endings from a seed and a counter, so that a run can be repeated.

/// Gives UIDs and name endings.
#[derive(Debug, Clone)]
pub(crate) struct UidSource {
    seed: u64,
    counter: u64,
}

/// A well mixing bijection on 64 bits (the finaliser of SplitMix64).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl UidSource {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed: mix(seed ^ 0x9e37_79b9_7f4a_7c15), counter: 0 }
    }

    fn draw(&mut self) -> u64 {
        self.counter += 1;
        mix(self.seed.wrapping_add(self.counter.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// A UID in the shape of a version 4 UUID. It begins with a number that counts up, so that
    /// objects sorted by UID stand in the order in which they were made.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.draw(), self.draw());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            self.counter & 0xffff_ffff,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff,
        )
    }

    /// Five letters and digits for a generated name.
    pub(crate) fn ending(&mut self) -> String {
        letters(self.draw())
    }
}

/// Five letters and digits made from a number; vowels are left out so that no words arise.
pub(crate) fn letters(number: u64) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut rest = number;
    let mut text = String::new();
    for _ in 0..5 {
        text.push(char::from(ALPHABET[(rest % 27) as usize]));
        rest /= 27;
    }
    text
}

/// Five letters and digits that always are the same for the same text.
pub(crate) fn letters_for(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    letters(mix(hash))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn uids_look_like_version_four_and_differ_early() {
        let mut source = UidSource::new(7);
        let uids: Vec<String> = (0..10_000).map(|_| source.uid()).collect();
        let starts: BTreeSet<String> =
            uids.iter().map(|uid| uid.replace('-', "")[..31].to_string()).collect();
        assert_eq!(starts.len(), uids.len());
        for uid in &uids {
            let lengths: Vec<usize> = uid.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{uid}");
            assert_eq!(&uid[14..15], "4");
            assert!("89ab".contains(&uid[19..20]));
        }
    }

    #[test]
    fn uids_sort_in_the_order_in_which_they_were_made() {
        let mut source = UidSource::new(7);
        let uids: Vec<String> = (0..1_000).map(|_| source.uid()).collect();
        assert!(uids.is_sorted());
    }

    #[test]
    fn the_same_seed_gives_the_same_uids() {
        assert_eq!(UidSource::new(1).uid(), UidSource::new(1).uid());
        assert_ne!(UidSource::new(1).uid(), UidSource::new(2).uid());
    }
}
