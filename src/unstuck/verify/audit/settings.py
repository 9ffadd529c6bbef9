"""Gates may ask for more, not for less: settings are flattened to keys with values, and the catalogue says which way is down."""

import json
import re
import tomllib
from collections.abc import Callable, Container, Iterator, Sequence
from functools import cache
from typing import Any

from unstuck.journal import Remark
from unstuck.verify.change import Change, added_lines, found, known, part_of, pattern, removed_lines

LONGEST = 300_000
LONGEST_LINE = 600
Values = tuple[str, ...]
Settings = dict[str, Values]
_ON, _OFF = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "off", "no"})


_OPTIONS = re.compile(r"\baddopts\b|^--\w")
"""Lines that are options of a runner, whatever command it is called by."""
_OF_LINTERS = re.compile(r"\.(?:toml|cfg|ini)\s*exclude\b")
"""What is excluded in such a file is left out by a linter, a type checker or a packager; their keys have rows of their own."""


def judge_settings(changes: Sequence[Change]) -> Iterator[Remark]:
    """Find settings and commands that ask for less than before."""
    watched = [one for one in changes if part_of(one.path) in {"settings", "commands", "unknown"} and not one.binary]
    kept = {name for one in watched for line in added_lines(one) for name in _checks_in(line.text)}
    come = {
        (key.rpartition(".")[2], values)
        for one in watched
        for key, values in flatten(one.path, one.new).items() - flatten(one.path, one.old).items()
    }
    for change in watched:
        if part_of(change.path) != "unknown" or re.search(
            r"\.(?:json|toml|ya?ml|ini|cfg|xml|runsettings)$", change.path
        ):
            yield from _keys(change, come, replaced=any(one is not change and one.new for one in watched))
            yield from _lines(change, set(kept))


def is_harmless(change: Change) -> bool:
    """Tell whether a change of a settings file is about the product alone: its dependencies, its name, its version."""
    if part_of(change.path) == "lock":
        return True
    if part_of(change.path) != "settings" or change.old is None or change.new is None or any(judge_settings([change])):
        return False
    old, new = flatten(change.path, change.old), flatten(change.path, change.new)
    return all(pattern("settings", "dependency").search(key) for key in {*old, *new} if old.get(key) != new.get(key))


def _keys(change: Change, come: Container[tuple[str, Values]], *, replaced: bool) -> Iterator[Remark]:
    """Find keys whose values went down; one that stands in another table now, as it was, has `come` there."""
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
            line = _line_of(change.new, key)
            was, now = (", ".join(one)[:80] if one else "nothing" for one in (old.get(key), new.get(key)))
            yield found(row["breaks"], change.path, line, f"{key} {reason}.", f"{was} → {now}")


@cache
def _direction(key: str) -> dict[str, str] | None:
    """Return the row of a setting that has a direction."""
    rows: list[dict[str, str]] = known()["setting"]
    if pattern("settings", "no_gate").search(key):
        return None
    return next((row for row in rows if re.search(row["keys"], key, re.IGNORECASE)), None)


def _floor(old: Values | None, new: Values | None) -> str:
    before, after = _number(old), _number(new)
    if before is None or (new is None and before <= 0):
        return ""
    return "asks for less than before" if after is None or after < before else ""


def _ceiling(old: Values | None, new: Values | None) -> str:
    before, after = _number(old), _number(new)
    # 0 and none: it allowed anything
    return "allows more than before" if before and (after is None or after > before) else ""


def _rise(old: Values | None, new: Values | None) -> str:
    return "is more than before" if (_number(new) or 0) > (_number(old) or 0) else ""


def _leave_out(old: Values | None, new: Values | None) -> str:
    fresh = [one for one in _entries(new) if one not in _entries(old) and one.lower() not in {"false", "true"}]
    fresh = [one for one in fresh if not pattern("settings", "harmless").search(one)]
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
    if old is None and named and not any(_is_general(one) for one in named):
        return f"takes in nothing but {', '.join(named[:3])}"
    return _take_in(old, new)


def _is_general(entry: str) -> bool:
    """Tell whether an entry is about tests or sources in general, and not about some of them."""
    last = entry.rstrip("/").rpartition("/")[2]
    return re.search(r"(?i)test|spec|src|lib|app|\*\*$", entry) is not None and (
        "*" in last or "(" in last or "." not in last
    )


def _pick(old: Values | None, new: Values | None) -> str:
    return "picks some tests" if new and new != old else ""


def _strict(old: Values | None, new: Values | None) -> str:
    before, after = _first(old), _first(new)
    return "is switched off" if (after in _OFF and before != after) or (before in _ON and after == "") else ""


def _lax(old: Values | None, new: Values | None) -> str:
    return "is switched on" if _first(new) in _ON and _first(old) not in _ON else ""


def _level(old: Values | None, new: Values | None) -> str:
    before, after = (known()["level"].get(re.sub(r"[\[\]\"' ]", "", _first(one).split(",")[0])) for one in (old, new))
    if before is None and after is None and (_number(old) or 0) > (_number(new) or 0) >= 0 and new is not None:
        return "is lower than before"
    lower = before is not None and before > 0 and (after is None or after < before)
    return "is weaker than before" if lower or (before is None and old is None and after == 0) else ""


_WAYS: dict[str, Callable[[Values | None, Values | None], str]] = {
    "floor": _floor, "ceiling": _ceiling, "rise": _rise, "leave_out": _leave_out, "take_in": _take_in, "strict": _strict, "lax": _lax, "pick": _pick, "find": _find, "level": _level,
}  # fmt: skip


def _lines(change: Change, kept: set[str]) -> Iterator[Remark]:
    """Find commands that are made to pass, that run less, or that are gone; one beside those that were there takes nothing."""
    before = [told for line in removed_lines(change) if (told := _told(change.path, line.text)) is not None]
    for line in added_lines(change):
        if _runs_nothing(line.text):
            continue
        green = pattern("settings", "green").search(line.text)
        if (green and (_checks_in(line.text) or not re.search(r"[|;]", green.group()))) or (
            re.match(r"\t-\s*\S", line.text) and _checks_in(line.text)
        ):
            says = "A failing command is made to look like a success."
            yield found("always-green", change.path, line.number, says, line.text.strip())
        elif _leaves_out(change, line.text, before):
            says = "Fewer tests are run than before."
            yield found("test-settings-narrowed", change.path, line.number, says, line.text.strip())
    in_build_server = part_of(change.path) == "commands" and re.search(r"\.ya?ml$|Jenkinsfile", change.path) is not None
    for line in removed_lines(change):
        if _runs_nothing(line.text) or _is_declaration(line.text):
            continue
        gone = [name for name in _checks_in(line.text) if name not in kept]
        kept.update(gone)  # said once
        if gone:
            lost = "test-settings-narrowed" if gone[0] == "tests" else "check-changed"
            rule = "ci-changed" if in_build_server else lost
            says = f"{change.path} no longer runs this ({gone[0]})."
            yield found(rule, change.path, line.number, says, line.text.strip())


def _leaves_out(change: Change, text: str, before: Sequence[list[str]]) -> bool:
    """Tell whether a line makes fewer tests run; a command beside those that were there takes nothing from them."""
    if pattern("settings", "leaves_out").search(text):
        return _OF_LINTERS.search(change.path + text) is None
    told = _told(change.path, text)
    if told is None or (not before and (change.old is not None or "/" in change.path) and not _OPTIONS.search(text)):
        return False
    return any(
        pattern("settings", "picks").fullmatch(word) for word in told if all(word not in words for words in before)
    )


def _told(path: str, text: str) -> list[str] | None:
    """Give what a line tells a runner of tests; None where it runs none."""
    runner = (
        re.match("", text)
        if path.endswith(".rspec")
        else _OPTIONS.search(text) or pattern("check", "tests").search(text)
    )
    return None if runner is None else re.findall(r"-p no:[^\s,\"']+|[^\s,;\"'=\[\]()]+", text[runner.end() :])


def _runs_nothing(text: str) -> bool:
    return len(text) > LONGEST_LINE or text.lstrip().startswith(("#", "//"))


def _checks_in(text: str) -> list[str]:
    """Name what the commands of a line are for."""
    return [name for name in known()["check"] if pattern("check", name).search(text)]


def _is_declaration(text: str) -> bool:
    """Tell whether a line names a tool as a dependency or a table, and runs nothing."""
    return re.search(
        r"""^\s*["'\[]|^\s*[\w-]+\s*=\s*["'{\[]|[><=~^]=|^\s*"[\w@/-]+"\s*:\s*"[\^~]?\d|<artifactId>|^\s*(?:gem|testImplementation|implementation|id|-\s*repo|rev|PackageReference|use|import)\b""",
        text,
    ) is not None and not re.search(r'^\s*"[\w:-]+"\s*:\s*"(?![\^~]?\d)', text)


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
            plain = tuple(_text(one) for one in here if not isinstance(one, dict | list))
            if plain or not here:
                out[path] = out.get(path, ()) + plain
            todo += [
                (f"{path}.[{one.get('module') or one.get('name') or ''}]", one) for one in here if isinstance(one, dict)
            ]
        else:
            out[path] = (_text(here),)
    return out


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_PAIR = re.compile(r"""^(?:-\s+)?["']?([\w.@/*-]+)["']?\s*(?::=|=>|[:=])\s*(.*)$""")
_TAG = re.compile(r"<([\w.:-]+)([^<>]*)>([^<]*)</\1>|<([\w.:-]+)(\s[^<>]*?)/?>")
_ATTRIBUTE = re.compile(r"""([\w.:-]+)\s*=\s*"([^"]*)\"""")
_WORD = re.compile(r"^(\w+)[\s(]+(['\"].*)$")


def _of_lines(text: str) -> Settings:
    """Read INI, YAML, XML, Gradle and settings in code by their look: sections, indentation, pairs, tags, lists."""
    out: dict[str, list[str]] = {}
    stack: list[tuple[int, str]] = []
    section = ""
    for line in text.splitlines():
        bare = line.strip().rstrip(",;")
        if not bare or len(line) > LONGEST_LINE or bare.startswith(("#", ";", "//", "*")):
            continue
        depth = len(line) - len(line.lstrip())
        while stack and (stack[-1][0] > depth or (stack[-1][0] == depth and not bare.startswith("- "))):
            stack.pop()
        head = ".".join([section, *(key for _, key in stack)]).strip(".")
        if re.fullmatch(r"\[+[^\[\]\"',]+\]+", bare):
            section, stack = bare.strip("[]").strip(), []
        elif bare.startswith("<"):
            for tag, attributes, body, single, more in _TAG.findall(bare):
                if body.strip():
                    out.setdefault(f"{head}.{tag}".lstrip("."), []).append(body.strip())
                for key, value in _ATTRIBUTE.findall(attributes or more):
                    out.setdefault(f"{head}.{tag or single}.{key}".lstrip("."), []).append(value)
            opened = re.fullmatch(r"<([\w.:-]+)[^<>]*[^/]?>", bare)
            if opened and not bare.endswith("/>"):
                stack.append((depth, opened[1]))
        elif match := _PAIR.match(bare):
            key, value = match[1], match[2].strip()
            if value in {"", "{", "[", "(", "[{", "|", ">"} or value.endswith(("{", "[", "(")):
                stack.append((depth, key))
            else:
                out.setdefault(f"{head}.{key}".lstrip("."), []).extend(_scalars(value))
                stack.append((depth, key))
        elif match := _WORD.match(bare):
            out.setdefault(f"{head}.{match[1]}".lstrip("."), []).append(match[2].strip("'\"() "))
        elif bare.endswith("{"):
            stack.append((depth, re.sub(r"\W+", "", bare)[:40]))
        elif stack and bare not in {"}", "]", ")", "})", "]}"}:
            out.setdefault(head, []).append(bare.removeprefix("- ").strip("'\" "))
    return {key: tuple(values) for key, values in out.items()}


def _scalars(text: str) -> list[str]:
    if text[:1] == "[":
        return [part.strip("\"' ") for part in text.strip("[]").split(",") if part.strip("\"' ")]
    return [text.strip("\"' ")]


def _entries(values: Values | None) -> list[str]:
    return [
        part.strip("\"' ")
        for value in values or ()
        for part in re.split(r"[\n,;](?![^{]*\})", value)
        if part.strip("\"' ")
    ]


def _number(values: Values | None) -> float | None:
    match = re.search(r"-?\d+(?:\.\d+)?", values[0]) if values else None
    return float(match.group()) if match else None


def _first(values: Values | None) -> str:
    return values[0].lower() if values else ""


def _line_of(text: str, key: str) -> int:
    last = key.rpartition(".")[2]
    return next((number for number, line in enumerate(text.splitlines(), 1) if last and last in line), 1)
