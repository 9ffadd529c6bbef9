"""Paths as text: where a denied one lies in the sandbox, and which existing ones a wrong one may mean. Pure."""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

SIMILAR = 0.72
MOST = 5


def sandboxed(path: str, root: str, sandbox: str) -> str:
    """Return the place of a path below the sandbox: its folders are kept, and it can never leave."""
    if root != "." and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :]
    kept: list[str] = []
    for part in path.split("/"):
        if part == "..":
            kept = kept[:-1]
        elif part not in {"", ".", "~"}:
            kept.append(part)
    return "/".join((sandbox.rstrip("/"), *(kept or ["file"])))


def parent_of(path: str) -> str:
    head, slash, _ = path.rstrip("/").rpartition("/")
    return head or ("/" if slash else ".")


def name_of(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def likely(path: str, parent: str, names: Iterable[str], twins: Sequence[str]) -> tuple[str, ...]:
    """Rank the existing paths that a wrong one may mean: by case, by spelling, by another ending, by another place."""
    wanted = name_of(path)
    in_place = ((_likeness(wanted, name), name) for name in names)
    scored = [
        (score, f"{parent}/{name}" if parent not in {"", "."} else name) for score, name in in_place if score >= SIMILAR
    ]
    elsewhere = [
        (_likeness(wanted, name_of(twin)) - 0.05 - place / 1000, twin) for place, twin in enumerate(twins[:200])
    ]
    scored += [(score, twin) for score, twin in elsewhere if score >= SIMILAR]
    best = sorted(scored, key=lambda one: (-one[0], len(one[1]), one[1]))
    return tuple(dict.fromkeys(found for _, found in best))[:MOST]


def _likeness(wanted: str, name: str) -> float:
    """Return 1 for the same name, a little less for another case or ending, and less for another spelling."""
    if name == wanted:
        return 1.0
    if name.casefold() == wanted.casefold():
        return 0.98
    stem, _, ending = wanted.rpartition(".")
    if stem and name.rpartition(".")[0].casefold() == stem.casefold():
        same = {ending.casefold(), name.rpartition(".")[2].casefold()}
        return 0.95 if same in ({"yml", "yaml"}, {"htm", "html"}, {"jpg", "jpeg"}, {"md", "markdown"}) else 0.78
    if _squeezed(name) == _squeezed(wanted):
        return 0.93
    return SequenceMatcher(None, wanted.casefold(), name.casefold()).ratio() * 0.95


def _squeezed(name: str) -> str:
    return name.casefold().translate({ord(char): None for char in "-_ ."})
