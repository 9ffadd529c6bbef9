"""Learn the weights of the word model from labelled sentences; `make rules` runs this.

A softmax regression by stochastic gradients, in the order of the files: the same input gives the same weights.
"""

import hashlib
import json
import random
import tomllib
from collections.abc import Iterator, Mapping
from math import exp, sqrt
from pathlib import Path

from unstuck.diagnosis.wording import NOTHING, SCALE, ZERO, features, tokens_of

TRAINING = Path(__file__).parent
LEARNED = TRAINING.parents[1] / "src" / "unstuck" / "catalog" / "words.json"
ROUNDS, STEP, SHRINK, SEED = 14, 0.35, 0.00016, 7
MOST = 45
KEPT = 8
"""The rounds whose mean is kept: one alone depends on the order of its examples."""


def made_from() -> str:
    """Name what the weights are learned from: if that changes, they are stale."""
    files = [TRAINING / "words.toml", *sorted((TRAINING / "sentences").glob("*.txt"))]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:16]


def examples() -> Iterator[tuple[str, str]]:
    """Yield every example with its kind: a file has headings in brackets, and below each one text per line."""
    for path in sorted((TRAINING / "sentences").glob("*.txt")):
        kind = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("[") and line.endswith("]") and " " not in line:
                kind = line[1:-1]
            elif line.strip() and not line.startswith("#"):
                yield line.replace(" ⏎ ", "\n"), kind


def learn() -> str:
    """Return the text of `catalog/words.json`."""
    notions = notions_of(tomllib.loads((TRAINING / "words.toml").read_text(encoding="utf-8")))
    taught = [(sorted(features(tokens_of(text), notions)), kind) for text, kind in examples()]
    kinds = [*sorted({kind for _, kind in taught} - {NOTHING}), NOTHING]
    weights = _descend(taught, kinds)
    rows = {name: "".join(chr(ZERO + max(-MOST, min(MOST, round(weight * SCALE)))) for weight in row)
            for name, row in sorted(weights.items())}  # fmt: skip
    none = chr(ZERO) * len(kinds)
    kept = {name: row for name, row in rows.items() if row != none or not name}
    found = {"made_from": made_from(), "kinds": kinds, "notions": notions, "weights": kept}
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"), indent=0) + "\n"


def notions_of(lists: Mapping[str, str]) -> dict[str, list[str]]:
    """Turn lists of words into what a reader looks up: stems, and the notions that they stand for."""
    found: dict[str, list[str]] = {}
    for name, text in lists.items():
        for phrase in text.split(","):
            key = phrase.strip() if phrase.strip()[0] in "<?" else " ".join(tokens_of(phrase))
            found.setdefault(key, []).append(f"@{name}")
    return {key: list(dict.fromkeys(names)) for key, names in sorted(found.items())}


def _descend(taught: list[tuple[list[str], str]], kinds: list[str]) -> dict[str, list[float]]:
    """Return the weights of every feature for every kind; the empty name is what each kind starts with."""
    size, order = len(kinds), random.Random(SEED)  # noqa: S311  # an order, not a secret
    places = {kind: place for place, kind in enumerate(kinds)}
    weights = {name: [0.0] * size for names, _ in taught for name in names}
    weights[""] = [0.0] * size
    seen = dict.fromkeys(weights, 1.0)
    means = {name: [0.0] * size for name in weights}
    for turn in range(ROUNDS):
        order.shuffle(taught)
        for names, kind in taught:
            rows = [weights[name] for name in ("", *names)]
            scores = [sum(column) for column in zip(*rows, strict=True)]
            most = max(scores)
            parts = [exp(score - most) for score in scores]
            whole = sum(parts)
            off = [part / whole for part in parts]
            off[places[kind]] -= 1.0
            for name in ("", *names):
                seen[name] += 0.25
                step = STEP / sqrt(seen[name])
                weights[name] = [
                    weight * (1 - SHRINK * STEP * 20) - step * one
                    for weight, one in zip(weights[name], off, strict=True)
                ]
        if turn >= ROUNDS - KEPT:
            for name, row in weights.items():
                means[name] = [mean + weight / KEPT for mean, weight in zip(means[name], row, strict=True)]
    return means


if __name__ == "__main__":
    LEARNED.write_text(learn(), encoding="utf-8")
