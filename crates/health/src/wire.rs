//! The PROXY protocol's header before a probe.
//!
//! Azure's Private Link puts a header of version 2 before everything that it forwards while
//! `tcpProxyV2` is on; the load balancer's own probes, and the kubelet's, come without one. The
//! first bytes tell which, for no HTTP request begins like that. Source:
//! <https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt>, section 2.

/// Most bytes of a header.
pub const MOST: usize = 4_096;
/// What version 2 begins with.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family, length.
const FIXED: usize = 16;
/// What version 1 begins with, and its longest line.
const FIRST: &[u8] = b"PROXY ";
const LONGEST_LINE: usize = 107;

/// What a connection begins with, as far as it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Not enough to tell.
    Partial,
    /// A header of so many bytes, 0 where there is none; the request follows.
    Length(usize),
    /// It is damaged, and what is wrong with it.
    Refused(&'static str),
}

/// Reads what has come so far.
#[must_use]
pub fn header(bytes: &[u8]) -> Header {
    let begins = |with: &[u8]| {
        let common = bytes.len().min(with.len());
        bytes[..common] == with[..common]
    };
    if bytes.is_empty() {
        return Header::Partial;
    }
    if begins(SIGNATURE) {
        let Some(fixed) = bytes.get(..FIXED) else { return Header::Partial };
        if fixed[12] >> 4 != 2 {
            return Header::Refused("the PROXY header is of an unknown version");
        }
        let length = FIXED + usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
        return match length {
            _ if length > MOST => Header::Refused("the PROXY header is too long"),
            _ if bytes.len() < length => Header::Partial,
            _ => Header::Length(length),
        };
    }
    if !begins(FIRST) {
        return Header::Length(0);
    }
    // POST and PUT begin with the same letter, so that one letter decides nothing.
    match bytes.iter().take(LONGEST_LINE).position(|byte| *byte == b'\n') {
        Some(end) => Header::Length(end + 1),
        None if bytes.len() < LONGEST_LINE => Header::Partial,
        None => Header::Refused("the PROXY header has no end"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBE: &[u8] = b"GET /services/default/web HTTP/1.1\r\nhost: 10.0.0.4\r\n\r\n";

    fn second_version(addresses: &[u8]) -> Vec<u8> {
        let length = u16::try_from(addresses.len()).unwrap().to_be_bytes();
        [SIGNATURE, &[0x21, 0x11], &length, addresses].concat()
    }

    #[test]
    fn a_header_is_found_whole_and_piece_by_piece() {
        let address = [10, 0, 0, 4, 10, 0, 0, 5, 0x9c, 0x40, 0x28, 0x20];
        // With the link's identifier, as Azure appends it: type 0xEE.
        let link = [&address[..], &[0xee, 0, 5, 1, 1, 2, 3, 4]].concat();
        let local = [SIGNATURE, &[0x20, 0, 0, 0]].concat();
        let first = b"PROXY TCP4 10.0.0.4 10.0.0.5 40000 10272\r\n".to_vec();
        for before in [second_version(&address), second_version(&link), local, first] {
            let whole = [&before[..], PROBE].concat();
            for length in 0..before.len() {
                assert_eq!(header(&whole[..length]), Header::Partial, "{length} of {before:?}");
            }
            for length in before.len()..whole.len() {
                assert_eq!(header(&whole[..length]), Header::Length(before.len()), "{before:?}");
            }
        }
    }

    #[test]
    fn without_a_header_the_request_begins_at_once() {
        assert_eq!(header(b""), Header::Partial);
        for length in 1..=PROBE.len() {
            assert_eq!(header(&PROBE[..length]), Header::Length(0));
        }
        assert_eq!(header(b"P"), Header::Partial, "POST or PROXY");
        assert_eq!(header(b"PO"), Header::Length(0));
    }

    #[test]
    fn a_damaged_header_is_refused() {
        let newer = [SIGNATURE, &[0x31, 0x11, 0, 0]].concat();
        let huge = [SIGNATURE, &[0x21, 0x11, 0xff, 0xff]].concat();
        let endless = [FIRST, &[b'x'; LONGEST_LINE]].concat();
        for bytes in [newer, huge, endless] {
            assert!(matches!(header(&bytes), Header::Refused(_)), "{bytes:?}");
        }
    }
}
