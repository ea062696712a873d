#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// Texts that reach every branch: NUL runs, the cut of a hashed part, names that are special elsewhere.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c\\x00]{0,6}",
        2 => "\\PC{0,12}",
        1 => Just("__proto__".to_owned()),
        2 => (0_usize..140, "[a\\x00]{0,3}").prop_map(|(length, tail)| "a".repeat(length) + &tail),
        1 => (0_usize..140, "[a\\x00]{0,3}").prop_map(|(length, tail)| "\0".repeat(length) + &tail),
        1 => (0_usize..900).prop_map(|length| "é".repeat(length)),
    ]
}

fn tuple() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(part(), 1..=limits::MAX_KEY_PARTS)
}

fn short_tuple() -> impl Strategy<Value = Vec<String>> {
    let longest = limits::MAX_KEY_PART_BYTES - END.len();
    let short = part().prop_map(move |mut part| {
        while !is_short(&part) {
            part.truncate(part.floor_char_boundary(part.len().min(longest + 1) - 1));
        }
        part
    });
    prop::collection::vec(short, 1..=limits::MAX_KEY_PARTS)
}

fn key(parts: &[String]) -> Key {
    parts[1..].iter().fold(Key::of(&parts[0]), |key, part| key.text(part))
}

fn is_short(part: &str) -> bool {
    let nuls = part.bytes().filter(|&byte| byte == 0).count();
    part.len() + nuls + END.len() <= limits::MAX_KEY_PART_BYTES
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Different tuples have different keys, and no key is a prefix of another tuple of the same length.
    #[test]
    fn keys_do_not_collide(a in tuple(), b in tuple()) {
        let (left, right) = (key(&a), key(&b));
        prop_assert_eq!(a == b, left == right);
        if a.len() == b.len() && a != b {
            prop_assert!(!left.as_bytes().starts_with(right.as_bytes()));
        }
    }

    /// Byte order is tuple order wherever no part is hashed.
    #[test]
    fn order_is_kept(a in short_tuple(), b in short_tuple()) {
        prop_assert_eq!(key(&a).as_bytes().cmp(key(&b).as_bytes()), a.cmp(&b));
    }

    /// Parts and the number come back; a long part comes back as hashed, and only then the key is not exact.
    #[test]
    fn keys_read_back(parts in tuple(), number: u64) {
        let whole = key(&parts).number(number);
        prop_assert!(whole.as_bytes().len() <= limits::MAX_LMDB_KEY_BYTES);
        prop_assert_eq!(whole.is_exact(), parts.iter().all(|part| is_short(part)));
        let mut reader = Parts::of(whole.as_bytes());
        for part in &parts {
            let expected = if is_short(part) { Part::Exact(part.clone()) } else { Part::Hashed };
            prop_assert_eq!(reader.text(), Some(expected));
        }
        prop_assert_eq!(reader.number(), Some(number));
    }

    /// A prefix scan from a key to `after_prefix` holds exactly the tuples that start with the same parts.
    #[test]
    fn prefixes_select_their_tuples(a in tuple(), b in tuple()) {
        let (prefix, other) = (key(&a), key(&b));
        let end = prefix.after_prefix();
        let inside = prefix.as_bytes() <= other.as_bytes() && other.as_bytes() < end.as_slice();
        prop_assert_eq!(inside, b.starts_with(&a));
    }

    /// Reading any bytes as a key ends, and never panics.
    #[test]
    fn foreign_bytes_are_harmless(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut parts = Parts::of(&bytes);
        while parts.text().is_some() {}
        let _ = parts.number();
    }
}

#[test]
fn the_cut_of_a_hashed_part_never_splits_an_escaped_nul() {
    for lead in 0..4 {
        let long = "x".repeat(limits::HASHED_PART_HEAD_BYTES - lead) + &"\0".repeat(200);
        let other = "x".repeat(limits::HASHED_PART_HEAD_BYTES - lead) + &"\0".repeat(201);
        let (long, other) = (Key::of(&long), Key::of(&other));
        assert!(!long.is_exact());
        assert_ne!(long, other);
        assert_eq!(Parts::of(long.as_bytes()).text(), Some(Part::Hashed));
    }
}

#[test]
fn the_end_of_a_prefix_carries_over_full_bytes() {
    assert_eq!(after_prefix(&[1, 0xFF, 0xFF]), [2]);
    assert_eq!(after_prefix(&[1, 2]), [1, 3]);
}
