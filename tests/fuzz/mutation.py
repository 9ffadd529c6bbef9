"""Make bad bytes from good ones: cut, doubled, spliced, flipped, and with what readers stumble over put in."""

import random
from collections.abc import Callable, Sequence

AWKWARD = (
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"\x1b]0;x\x07",
    "\u202e\u2028\N{ZERO WIDTH SPACE}\N{COMBINING ACUTE ACCENT}".encode(),
    b"\r",
    b"\r\n\r",
    b"```",
    b"---\n",
    b"- [ ] ",
    b"|||",
    b"[" * 300,
    b'{"a":' * 300,
    b"null",
    b"NaN",
    b"1e999",
    b"-0",
    b"99999999999999999999999999",
    b'""',
    b"{}",
    b"[]",
    b"true",
    b"%s%n{0}",
    b"../../etc/passwd",
    b"$(touch x)",
    b"a" * 5000,
    b"1" * 5000,
)


def mutated(seed: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Return the seed after a few changes."""
    for _ in range(chance.randint(1, 6)):
        seed = chance.choice(CHANGES)(seed, others, chance)
    return seed[:100_000]


def _cut(seed: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    start, end = _span(seed, chance)
    return seed[:start] + seed[end:]


def _double(seed: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    start, end = _span(seed, chance)
    return seed[:end] + seed[start:end] * chance.randint(1, 4) + seed[end:]


def _splice(seed: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    other = chance.choice(others)
    start, end = _span(other, chance)
    at = chance.randint(0, len(seed))
    return seed[:at] + other[start:end] + seed[at:]


def _flip(seed: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    changed = bytearray(seed)
    for _count in range(chance.randint(1, 8)):
        if changed:
            changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _put(seed: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    start, end = _span(seed, chance)
    return seed[:start] + chance.choice(AWKWARD) + seed[chance.choice((start, end)) :]


def _span(seed: bytes, chance: random.Random) -> tuple[int, int]:
    start = chance.randint(0, len(seed))
    return start, min(len(seed), start + chance.choice((1, 4, 16, 64, 256)))


CHANGES: tuple[Callable[[bytes, Sequence[bytes], random.Random], bytes], ...] = (_cut, _double, _splice, _flip, _put)
