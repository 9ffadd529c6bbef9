"""Read the stories of a `prd.json` as Ralph loops keep them, and say with `passes` which of them hold; nothing else changes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unstuck.plans.editor import Edit, apply
from unstuck.plans.json_places import Node, places, plain_object, set_value, strings, told_checks, word
from unstuck.plans.plan import Check, CheckKind, Plan, Problem, Task
from unstuck.tell import one_line
from unstuck.tools import Runnable, effect

FORMAT = "prd.json"
PRIORITIES = {"critical": 0.0, "high": 1.0, "medium": 2.0, "normal": 2.0, "low": 3.0}
LAST = 1e9
DEPENDS = ("dependencies", "dependsOn", "depends_on", "blockedBy")
SENTENCES = ("acceptanceCriteria", "acceptance_criteria", "criteria", "steps", "notes")
FLAGS = ("passes", "complete", "completed", "done")
"""How a story says that it holds; the first that any of them has is the list's."""
_OURS = (*FLAGS, "completedAt", "completed_at")
GATES = ("verificationCommands", "verification_commands")
KINDS: Mapping[str, CheckKind] = {
    "typecheck": "types", "types": "types", "lint": "lint", "format": "format", "test": "test", "tests": "test", "build": "build",
}  # fmt: skip
TITLE_CHARS = 120


def looks_like(value: Any) -> bool:
    """Tell whether a JSON value holds stories that say whether they pass."""
    lists = [value] if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    return any(_are_stories(one) for one in lists)


def _are_stories(value: Any) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value) and bool(_flag(value))
    )


def _flag(stories: Sequence[Any]) -> str:
    said = (flag for flag in FLAGS if any(isinstance(one.get(flag), bool) for one in stories if isinstance(one, dict)))
    return next(said, "")


def read(text: str, path: str, runnable: Runnable) -> Plan:
    """Read a whole plan, the most urgent story first; everything wrong with it is in its problems."""
    try:
        json.loads(text.removeprefix("\ufeff"))
        root, stories = _stories(text)
    except (ValueError, RecursionError) as error:
        problem = Problem(message=f"The file is not a list of stories in JSON: {error}.", hint="Correct the JSON.")
        return Plan(path=path, format=FORMAT, tasks=(), problems=(problem,))
    ranked = sorted(stories, key=lambda story: _rank(plain_object(story[1]).get("priority")))
    title = word(root.get("project") or root.get("projectName") or root.get("feature") or root.get("title"))
    tasks = tuple(_task(text, name, node, runnable) for name, node in ranked)
    return Plan(path=path, format=FORMAT, title=title, tasks=tasks, gates=tuple(_gates(root)))


def mark(text: str, statuses: Mapping[str, str]) -> tuple[str, frozenset[str]]:
    """Say of each story whether it passes; what a person skipped keeps what it has."""
    stories = _stories(text)[1]
    flag = _flag([plain_object(node) for _, node in stories])
    edits: list[Edit] = []
    for name, node in stories:
        status = statuses.get(name, "skipped")
        if status != "skipped":
            edits += set_value(node, flag, status == "complete", plain_object(node).get(flag) is True)
    return apply(text, edits), frozenset(name for name, _ in stories)


def _stories(text: str) -> tuple[dict[str, Any], Sequence[tuple[str, Node]]]:
    """Return the document's own facts, and each story with its id; one without is called after its place."""
    root = places(text)
    facts = plain_object(root) if isinstance(root.value, dict) else {}
    lists = [root] if isinstance(root.value, list) else list(root.value.values()) if facts else []
    found = next((one for one in lists if _are_stories(_plain_list(one))), None)
    if found is None:
        raise ValueError('it has no list of objects with "passes", "complete" or "done"')
    named = [(word(plain_object(node).get("id")) or f"s{place}", node) for place, node in enumerate(found.items, 1)]
    return facts, named


def _plain_list(node: Node) -> list[Any]:
    return [plain_object(one) if isinstance(one.value, dict) else None for one in node.items]


def _rank(priority: Any) -> float:
    if isinstance(priority, int | float) and not isinstance(priority, bool):
        return float(priority)
    said = word(priority).casefold()
    return float(said) if said.isdecimal() else PRIORITIES.get(said, LAST if not said else PRIORITIES["medium"])


def _task(text: str, name: str, node: Node, runnable: Runnable) -> Task:
    raw = plain_object(node)
    shown = {key: value for key, value in raw.items() if key not in _OURS}
    title = word(raw.get("title")) or word(raw.get("name")) or word(raw.get("description"))
    return Task(
        id=name,
        title=one_line(title, TITLE_CHARS) or f"Story {name}",
        line=text.count("\n", 0, node.start) + 1,
        body=json.dumps(shown, indent=2, ensure_ascii=False),
        depends_on=tuple(dict.fromkeys(_depends(raw))),
        checks=told_checks(raw, [line for key in SENTENCES for line in _lines(raw.get(key))], runnable),
        items=tuple(line for line in _lines(raw.get("acceptanceCriteria"))),
        done=any(raw.get(flag) is True for flag in FLAGS),
        digest=json.dumps(shown, sort_keys=True, default=str),
    )


def _gates(root: Mapping[str, Any]) -> Iterator[Check]:
    """Return the commands that must hold after every story, by what they are called."""
    for key in GATES:
        named = root.get(key)
        for name, line in named.items() if isinstance(named, dict) else ():
            if isinstance(line, str) and line.strip() and not effect(line):
                yield Check(command=line, kind=KINDS.get(name.casefold(), "verify"))


def _depends(raw: Mapping[str, Any]) -> Iterator[str]:
    for key in DEPENDS:
        listed = raw.get(key)
        yield from (word(one) for one in listed if word(one)) if isinstance(listed, list) else ()


def _lines(value: Any) -> list[str]:
    return strings(value) if isinstance(value, list) else [value] if isinstance(value, str) else []
