"""Read the stories of a `prd.json` as Ralph loops keep them, and say with `passes` which of them hold; nothing else changes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unstuck.plans.editor import apply
from unstuck.plans.json_plans import Node, make_task, places, read_json, set_value, strings, told_checks, word, words
from unstuck.plans.plan import Check, CheckKind, Plan, Task
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
    return any(map(_are_stories, _lists(value)))


def _lists(value: Any) -> list[Any]:
    return [value] if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []


def _are_stories(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value) and bool(_flag(value))


def _flag(stories: Sequence[Any]) -> str:
    return next((flag for flag in FLAGS if any(isinstance(one.get(flag), bool) for one in stories)), "")


def read(text: str, path: str, _tag: str, runnable: Runnable) -> Plan:
    """Read a whole plan, the most urgent story first; everything wrong with it is in its problems."""

    def stories(root: Node) -> Plan:
        ranked = sorted(_stories(root), key=lambda story: _rank(story[1].plain.get("priority")))
        facts = root.plain if root.is_object else {}
        title = word(facts.get("project") or facts.get("projectName") or facts.get("feature") or facts.get("title"))
        tasks = tuple(_task(text, name, node, runnable) for name, node in ranked)
        return Plan(path=path, format=FORMAT, title=title, tasks=tasks, gates=tuple(_gates(facts)))

    return read_json(text, path, FORMAT, "a list of stories", stories)


def mark(text: str, statuses: Mapping[str, str], _tag: str = "") -> tuple[str, frozenset[str]]:
    """Say of each story whether it passes; what a person skipped keeps what it has."""
    stories = _stories(places(text))
    flag = _flag([node.plain for _, node in stories])
    edits = [
        edit
        for name, node in stories
        if statuses.get(name, "skipped") != "skipped"
        for edit in set_value(node, flag, statuses[name] == "complete", node.plain.get(flag) is True)
    ]
    return apply(text, edits), frozenset(name for name, _ in stories)


def _stories(root: Node) -> Sequence[tuple[str, Node]]:
    """Return each story with its id; one without is called after its place."""
    lists = [root] if isinstance(root.value, list) else list(root.value.values()) if root.is_object else []
    found = next((one for one in lists if _are_stories(one.plain)), None)
    if found is None:
        raise ValueError('it has no list of objects with "passes", "complete" or "done"')
    return [(word(node.plain.get("id")) or f"s{place}", node) for place, node in enumerate(found.objects, 1)]


def _rank(priority: Any) -> float:
    if isinstance(priority, int | float) and not isinstance(priority, bool):
        return float(priority)
    said = word(priority).casefold()
    return float(said) if said.isdecimal() else PRIORITIES.get(said, LAST if not said else PRIORITIES["medium"])


def _task(text: str, name: str, node: Node, runnable: Runnable) -> Task:
    raw = node.plain
    return make_task(
        text,
        node,
        {key: value for key, value in raw.items() if key not in _OURS},
        id=name,
        title=one_line(word(raw.get("title"), raw.get("name"), raw.get("description")), TITLE_CHARS) or f"Story {name}",
        depends_on=tuple(dict.fromkeys(one for key in DEPENDS for one in words(raw.get(key)))),
        checks=told_checks(raw, [line for key in SENTENCES for line in _lines(raw.get(key))], runnable),
        items=tuple(_lines(raw.get("acceptanceCriteria"))),
        done=any(raw.get(flag) is True for flag in FLAGS),
    )


def _gates(facts: Mapping[str, Any]) -> Iterator[Check]:
    """Return the commands that must hold after every story, by what they are called."""
    for key in GATES:
        named = facts.get(key)
        for name, line in named.items() if isinstance(named, dict) else ():
            if isinstance(line, str) and line.strip() and not effect(line):
                yield Check(command=line, kind=KINDS.get(name.casefold(), "verify"))


def _lines(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else strings(value)
