use ring::Ring;

#[test]
fn keeps_what_fits() {
    let mut ring = Ring::new(2);
    ring.push(1);
    ring.push(2);
    assert_eq!(ring.len(), 2);
    assert_eq!(ring.iter().copied().collect::<Vec<_>>(), vec![1, 2]);
}

#[test]
fn drops_the_oldest() {
    let mut ring = Ring::new(2);
    for value in [1, 2, 3] {
        ring.push(value);
    }
    assert_eq!(ring.front(), Some(&2));
    assert!(!ring.contains(&1));
}

#[test]
fn parses_sizes() {
    let cases = [
        ("1k", 1024),
        ("2k", 2048),
        ("1m", 1048576),
        ("3", 3),
    ];
    for (text, size) in cases {
        assert_eq!(Ring::<u8>::size_of(text), Ok(size), "{text}");
    }
}

#[test]
#[should_panic(expected = "zero")]
fn refuses_zero() {
    let ring = Ring::<u8>::new(0);
    assert!(ring.is_empty());
}
