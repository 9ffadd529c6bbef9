"""Gates may ask for more, not for less: settings and commands are read as keys with values, and the catalogue says which way is down."""

import json
import re
import tomllib
from collections.abc import Callable, Container, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

from unstuck.model.changes import Change
from unstuck.model.verdict import Remark
from unstuck.verify.change import added_lines, found, is_judge, known, part_of, pattern, removed_lines

LONGEST = 300_000
LONGEST_LINE = 600
Values = tuple[str, ...]
Settings = dict[str, Values]


def judge_settings(changes: Sequence[Change]) -> Iterator[Remark]:
    """Find settings and commands that ask for less than before; a list of what is ignored runs nothing."""
    parts = {"settings", "commands", "ours", "unknown"}
    watched = [x for x in changes if part_of(x.path) in parts and not x.binary and not x.path.endswith("ignore")]
    kept = {name for one in watched for line in added_lines(one) for name in _checks_in(line.text)}
    come = {
        (key.rpartition(".")[2], values)
        for one in watched
        for key, values in flatten(one.path, one.new).items() - flatten(one.path, one.old).items()
    }
    lines = (line.strip() for one in changes if is_judge(one.path) for line in (one.new or "").splitlines())
    runs = "\n".join(line for line in lines if not _is("idle", line))
    for change in watched:
        if part_of(change.path) != "unknown" or _is("readable", change.path):
            replaced = any(one is not change and one.new for one in watched)
            said = [*_keys(change, come, replaced=replaced), *_lines(change, set(kept))]
            yield from said or _recipes(change, runs)


def is_harmless(change: Change) -> bool:
    """Tell whether a change of a settings file is about the product alone: its dependencies, its name, its version."""
    if part_of(change.path) == "lock":
        return True
    if part_of(change.path) != "settings" or change.old is None or change.new is None or any(judge_settings([change])):
        return False
    old, new = flatten(change.path, change.old), flatten(change.path, change.new)
    return all(not key or _is("dependency", key) for key in {*old, *new} if old.get(key) != new.get(key))


def _is(name: str, text: str) -> bool:
    return pattern("settings", name).search(text) is not None


# --- keys with a direction ------------------------------------------------------------------------------------------


def _keys(change: Change, come: Container[tuple[str, Values]], *, replaced: bool) -> Iterator[Remark]:
    """Find keys whose values went down; one that stands in another table now, as it was, has `come` there."""
    if _is("script", change.path):  # what it assigns is its own affair
        return
    old, new = flatten(change.path, change.old), flatten(change.path, change.new)
    if change.new is None:
        if any(_direction(key) for key in old) and not replaced:
            yield found("gate-loosened", change.path, 1, f"{change.path}, which set what the checks ask for, is gone.")
        return
    for key in sorted({*old, *new}):
        if old.get(key) == new.get(key) or (key not in new and (key.rpartition(".")[2], old[key]) in come):
            continue
        row = _direction(key)
        reason = _WAYS[row["way"]](old.get(key), new.get(key)) if row is not None else ""
        if row is None or not reason:
            continue
        everything = any(pattern("settings", "wide").fullmatch(one) for one in _entries(new.get(key)))
        if change.old is not None or row["breaks"] != "gate-loosened" or everything:
            was, now = (", ".join(one)[:80] if one else "nothing" for one in (old.get(key), new.get(key)))
            line = _line_of(change.new, key.rpartition(".")[2] or key)
            yield found(row["breaks"], change.path, line, f"{key} {reason}.", f"{was} → {now}")


@cache
def _direction(key: str) -> dict[str, str] | None:
    """Return the row of a setting that has a direction."""
    rows: list[dict[str, str]] = known()["setting"]
    return next((row for row in rows if not _is("no_gate", key) and re.search(row["keys"], key, re.IGNORECASE)), None)


def _fall(old: Values | None, new: Values | None) -> str:
    """Say that a number, a switch or a level fell; where nothing was said, what is switched off may have been on."""
    before, after = _measure(old), _measure(new)
    if before is None:
        return "is switched off" if old is None and after == 0 else ""
    return "asks for less than before" if before > 0 and (after is None or after < before) else ""


def _rise(old: Values | None, new: Values | None) -> str:
    return "is more than before" if (_measure(new) or 0) > (_measure(old) or 0) else ""


def _ceiling(old: Values | None, new: Values | None) -> str:
    before, after = _measure(old), _measure(new)
    return "allows more than before" if before is not None and (after is None or after > before) else ""


def _leave_out(old: Values | None, new: Values | None) -> str:
    fresh = [one for one in _entries(new) if one not in _entries(old) and not _is("harmless", one)]
    return f"leaves out {', '.join(fresh[:3])}" if fresh else ""


def _take_in(old: Values | None, new: Values | None) -> str:
    before, after = _entries(old), _entries(new)
    wider = tuple(other.rstrip("*/") for other in after if other.rstrip("*/"))
    gone = [one for one in before if one not in after and not one.startswith(wider)]
    if "ALL" in after or "." in after:
        return ""
    if old is not None and new is not None and not after:
        return "takes in nothing"
    return f"no longer holds {', '.join(gone[:3])}" if gone and len(after) <= len(before) else ""


def _find(old: Values | None, new: Values | None) -> str:
    """Say where tests are looked for in fewer places: where nothing was said, they were found in all."""
    named = _entries(new)
    if old is None and named and not any(_is("general", one) for one in named):
        return f"takes in nothing but {', '.join(named[:3])}"
    return _take_in(old, new)


_WAYS: dict[str, Callable[[Values | None, Values | None], str]] = {
    "fall": _fall,
    "floor": lambda old, new: _fall(old, new) if old else "",
    "rise": _rise,
    "ceiling": _ceiling,
    "leave_out": _leave_out,
    "take_in": _take_in,
    "find": _find,
    "pick": lambda old, new: "picks some tests" if new and new != old else "",
}


def _measure(values: Values | None) -> float | None:
    """Say how much a value asks for: a level by its word, or a number."""
    word = re.sub(r"[\[\]\"' ]", "", values[0].split(",")[0]).lower() if values else ""
    number = re.search(r"-?\d+(?:\.\d+)?", word)
    level: float | None = known()["level"].get(word)
    return float(number.group()) if level is None and number else level


def _entries(values: Values | None) -> list[str]:
    parts = (part.strip("\"' ") for value in values or () for part in re.split(r"[\n,;](?![^{]*\})", value))
    return [part.removeprefix("- ").strip("\"' ") for part in parts if part]


# --- commands: by the tools that they call --------------------------------------------------------------------------


def _lines(change: Change, kept: set[str]) -> Iterator[Remark]:
    """Find commands that are made to pass, that run less, or that are gone; one beside those that were there takes nothing."""
    before = [told for line in removed_lines(change) if (told := _told(change.path, line.text)) is not None]
    for line in (line for line in added_lines(change) if _runs(line.text)):
        green = pattern("settings", "green").search(line.text)
        checks = bool(_checks_in(line.text))
        if (green and (checks or not re.search(r"[|;]", green.group()))) or (
            checks and re.match(r"\t-\s*\S", line.text)
        ):
            yield found("always-green", change.path, line.number, evidence=line.text.strip())
        elif _leaves_out(change, line.text, before):
            says = "Fewer tests are run than before."
            yield found("test-settings-narrowed", change.path, line.number, says, line.text.strip())
    in_build_server = part_of(change.path) == "commands" and re.search(r"\.ya?ml$|Jenkinsfile", change.path) is not None
    for line in (line for line in removed_lines(change) if _runs(line.text)):
        gone = [name for name in _checks_in(line.text) if name not in kept]
        if not gone or (_is("declares", line.text) and not _is("declares_not", line.text)):
            continue
        kept.update(gone)  # said once
        lost = "test-settings-narrowed" if gone[0] == "tests" else "check-changed"
        says = f"{change.path} no longer runs this ({gone[0]})."
        yield found("ci-changed" if in_build_server else lost, change.path, line.number, says, line.text.strip())


def _leaves_out(change: Change, text: str, before: Sequence[list[str]]) -> bool:
    """Tell whether a line makes fewer tests run; a command beside those that were there takes nothing from them."""
    if _is("leaves_out", text):  # linters, type checkers and packagers leave things out in keys with rows of their own
        return re.search(r"\.(?:toml|cfg|ini)\s*exclude\b", change.path + text) is None
    told = _told(change.path, text)
    if told is None or (not before and (change.old is not None or "/" in change.path) and not _is("options", text)):
        return False
    new = (word for word in told if all(word not in words for words in before))
    return any(pattern("settings", "picks").fullmatch(word) for word in new)


def _told(path: str, text: str) -> list[str] | None:
    """Give what a line tells a runner of tests; None where it runs none."""
    runner = pattern("settings", "options").search(text) or pattern("check", "tests").search(text)
    if runner is None and not path.endswith(".rspec"):
        return None
    return re.findall(r"-p no:[^\s,\"']+|[^\s,;\"'=\[\]()]+", text[runner.end() if runner is not None else 0 :])


def _runs(text: str) -> bool:
    return len(text) <= LONGEST_LINE and not text.lstrip().startswith(("#", "//"))


def _checks_in(text: str) -> list[str]:
    """Name what the commands of a line are for."""
    return [name for name in known()["check"] if pattern("check", name).search(text)]


# --- commands: by what they stand under -----------------------------------------------------------------------------


def _recipes(change: Change, runs: str) -> Iterator[Remark]:
    """Find commands of a target, a job or a script that checks, which are made to pass, or gone without another in their place.

    `runs`: all lines of the new judge that run something. A file that is left without any asks, whoever names it.
    """
    old, new = flatten(change.path, change.old), flatten(change.path, change.new)
    left = any(_running(change.path, values) for name, values in new.items() if _is_recipe(change.path, name))
    rule = "check-changed" if left or change.new is None else "test-settings-narrowed"
    for name, commands in old.items():
        if not _is_recipe(change.path, name):
            continue
        ours = new.get(name, ())
        kept = _running(change.path, ours)
        lost = [one for one in _running(change.path, commands) if one not in ours]
        bent = [one for one in kept if one not in commands and _made_green(one, lost)]
        ended = bent or [one for one in ours if one == "exit 0" and one not in commands]
        if ended:
            yield found("always-green", change.path, _line_of(change.new, ended[0]), evidence=ended[0])
        elif lost and {*kept} <= {*commands} and ((name in new and not kept) or lost[0] not in runs):
            says = f"{change.path} no longer runs this ({name})."
            yield found(rule, change.path, _line_of(change.old, lost[0]), says, lost[0])


def _is_recipe(path: str, key: str) -> bool:
    """Tell whether what stands under a key is run to check something."""
    script = path.rpartition("/")[2] if _is("script", path) else ""
    if re.search(r"\.(?:json|toml|ya?ml|ini)$", path):
        return _is("step", f"{path} {key}") and _is("checks", key)
    return part_of(path) == "commands" and not _is("variable", key) and _is("checks", f"{script} {key}")


def _running(path: str, values: Values) -> list[str]:
    """Give the values that run something."""
    commands = (one.removeprefix("- ") if re.search(r"\.ya?ml$", path) else one for one in values)
    return [one for one in commands if not _is("idle", one) and not _is("no_command", one)]


def _made_green(command: str, lost: list[str]) -> bool:
    """Tell whether a command is one that stood there, with something about it that makes it pass."""
    green = _is("green", command) or re.match(r"[@+]*-\s*[^\s-]", command)
    return bool(green) and any(one.strip("@+-'\") ") in command for one in lost)


def _line_of(text: str | None, words: str) -> int:
    return next((number for number, line in enumerate((text or "").splitlines(), 1) if words in line), 1)


# --- any text as keys with values -----------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def flatten(path: str, text: str | None) -> Settings:
    """Give the settings of a text as dotted keys, each with its values; of one that cannot be parsed, what can be seen."""
    if not text or len(text) > LONGEST:
        return {}
    try:
        if path.endswith(".toml"):
            return _of_value(tomllib.loads(text))
        if re.search(r"\.(?:jsonc?|json5)$|rc$", path) and text.lstrip().startswith(("{", "[")):
            plain = re.sub(r"(?m)^\s*//.*$|/\*.*?\*/", "", text)
            return _of_value(json.loads(re.sub(r",(\s*[}\]])", r"\1", plain)))
    except (ValueError, RecursionError):
        pass
    return _of_lines(text)


def _of_value(value: Any) -> Settings:
    out: Settings = {}
    todo: list[tuple[str, Any]] = [("", value)]
    while todo:
        path, here = todo.pop()
        if isinstance(here, dict):
            todo += [(f"{path}.{key}".lstrip("."), inner) for key, inner in here.items()]
        elif isinstance(here, list):
            tables = [one for one in here if isinstance(one, dict)]
            plain = tuple(_text(one) for one in here if not isinstance(one, dict | list))
            if plain or not here:
                out[path] = out.get(path, ()) + plain
            todo += [(f"{path}.[{one.get('module') or one.get('name') or ''}]", one) for one in tables]
        else:
            out[path] = (_text(here),)
    return out


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_PAIR = re.compile(r"""^(?:-\s+)?["']?([\w.@/*-]+)["']?(?::(?!=)|\s+:(?=\s)|\s*(?::=|=>|=))\s*(.*)$""")
_TAG = re.compile(r"<([\w.:-]+)([^<>]*)>([^<]*)</\1>|<([\w.:-]+)(\s[^<>]*?)/?>")
_ATTRIBUTE = re.compile(r"""([\w.:-]+)\s*=\s*"([^"]*)\"""")
_WORD = re.compile(r"^(\w+)[\s(]+(['\"].*)$")


def _of_lines(text: str) -> Settings:
    """Read INI, YAML, XML, Makefiles, scripts and settings in code by their look: sections, indentation, pairs, tags, lists."""
    out: dict[str, list[str]] = {}
    stack: list[tuple[int, str]] = []
    for line in text.splitlines():
        bare = line.strip().rstrip(",;")
        if not bare or len(line) > LONGEST_LINE or bare.startswith(("#", ";", "//", "*")):
            continue
        section = re.fullmatch(r"\[+([^\[\]\"',]+)\]+", bare)
        item = bare.startswith("- ")
        depth = -1 if section else len(line) - len(line.lstrip())
        while stack and (stack[-1][0] > depth or (stack[-1][0] == depth and not item)):
            stack.pop()
        head = ".".join(key for _, key in stack)
        heading, said = (section[1].strip(), {}) if section else _of_line(bare)
        stack.append((depth + item, heading))
        for key, values in said.items():
            out.setdefault(f"{head}.{key}".strip("."), []).extend(values)
    return {key: tuple(values) for key, values in out.items()}


def _of_line(bare: str) -> tuple[str, dict[str, list[str]]]:
    """Give what a line is to those below it, and the values that it holds by their keys; those of its heading have none."""
    if bare.startswith("<"):
        said: dict[str, list[str]] = {}
        for tag, attributes, body, single, more in _TAG.findall(bare):
            if body.strip():
                said.setdefault(tag, []).append(body.strip())
            for key, value in _ATTRIBUTE.findall(attributes or more):
                said.setdefault(f"{tag or single}.{key}", []).append(value)
        opened = re.fullmatch(r"<([\w.:-]+)[^<>]*(?<!/)>", bare)
        return opened[1] if opened else "", said
    if pair := _PAIR.match(bare):
        key, value = pair[1], pair[2].strip()
        if value.endswith(("{", "[", "(", "\\")) or value in {"", "|", ">", "|-", ">-"}:
            return key, {key: []}
        return f"{key} {value}" if key == "name" else key, {key: _scalars(value)}
    words = re.sub(r"\W+", " ", bare).strip()[:40]
    if bare.endswith(("{", ":", " do")) or bare in {"}", "]", ")", "})", "]}"}:
        return words, {}
    word = _WORD.match(bare)
    return words, {word[1]: [word[2].strip("'\"() ")]} if word else {"": [bare.strip("'\" ")]}


def _scalars(text: str) -> list[str]:
    parts = text.strip("[]").split(",") if text[:1] == "[" else [text]
    return [part.strip("\"' ") for part in parts if text[:1] != "[" or part.strip("\"' ")]
