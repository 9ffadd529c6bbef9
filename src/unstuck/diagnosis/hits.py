"""Which hits of a scan are kept: the first and the last of every rule, in the order of the lines."""

from collections.abc import Iterable

KEEP = 40
"""Hits of one rule at either end; nothing between them could change a judgement, and a flood must not fill memory."""


def bounded(found: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Keep at most twice KEEP pairs (line, rule) of every rule; sorted by line, then by rule."""
    first: dict[int, list[int]] = {}
    last: dict[int, list[int]] = {}
    for line, rule in found:
        start = first.setdefault(rule, [])
        if len(start) < KEEP:
            start.append(line)
            continue
        end = last.setdefault(rule, [])
        end.append(line)
        if len(end) > 2 * KEEP:
            del end[:KEEP]
    pairs = [(line, rule) for rule, lines in first.items() for line in lines]
    pairs += [(line, rule) for rule, lines in last.items() for line in lines[-KEEP:]]
    return sorted(pairs)
