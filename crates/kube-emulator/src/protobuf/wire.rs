//! Protocol Buffers on the wire: tags, varints and length-delimited fields.

/// A field's value, by its wire type.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wire<'a> {
    /// Wire type 0.
    Number(u64),
    /// Wire type 2.
    Bytes(&'a [u8]),
    /// Wire types 1 and 5: no served message has one; in unknown fields they are skipped.
    Fixed,
}

/// Takes a varint off the front; `None` if it is cut off or longer than 64 bits.
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The fields of a message in their order, each with its number; `None` if it is damaged.
pub(super) fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Wire<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let mut take = |length: usize| {
            let (value, rest) = bytes.split_at_checked(length)?;
            bytes = rest;
            Some(value)
        };
        let wire = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes)?),
            1 => take(8).map(|_| Wire::Fixed)?,
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Wire::Bytes(value)
            }
            5 => take(4).map(|_| Wire::Fixed)?,
            _ => return None,
        };
        found.push((tag >> 3, wire));
    }
    Some(found)
}

/// Writes a varint.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes a number field. Negative numbers are two's complement in 64 bits.
pub(super) fn put_number(out: &mut Vec<u8>, field: u64, value: u64) {
    put_varint(out, field << 3);
    put_varint(out, value);
}

/// Writes a length-delimited field: text, bytes or a message.
pub(super) fn put_bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}
