"""Judge changed settings of test runners, linters, type checkers and coverage: a gate may not ask for less."""

import re
from collections.abc import Iterator, Mapping, Sequence

from unstuck.core.tamper.change import Change, Finding, added_lines
from unstuck.core.tamper.commands import weakened
from unstuck.core.tamper.flatten import Settings, flatten
from unstuck.core.tamper.gates import (
    ARTEFACT,
    ASSETS,
    CHOICES,
    COLLECTS,
    FOR_TESTS,
    HARMLESS,
    IGNORES,
    LAX,
    MAXIMUM,
    MINIMUM,
    NO_GATE,
    OPTIONS,
    RETRIES,
    RUFF_CONFLICTS,
    STRICT,
    UNMEASURED,
)
from unstuck.core.tamper.rules import found


def judge_settings(changes: Sequence[Change], moved_tests: Sequence[tuple[str, bool]] = ()) -> Iterator[Finding]:
    """Judge all changed settings files together, since settings move from one file to another.

    `moved_tests` are the test files that came or went, and whether they went.
    """
    left = {path.partition("/")[0] for path, went in moved_tests if went} - {
        path.partition("/")[0] for path, went in moved_tests if not went
    }
    pairs = [(change, flatten(change.path, change.old), flatten(change.path, change.new)) for change in changes]
    moved: dict[str, tuple[str, ...]] = {}
    for _, old, new in pairs:
        for key, values in new.items():
            if key not in old:
                moved.setdefault(_leaf(key), values)
    flat_eslint = any(re.search(r"eslint\.config\.", change.path) and change.old is None for change in changes)
    for change, old, new in pairs:
        yield from _retrying_plugin(change)
        if flat_eslint and change.new is None and ".eslintrc" in change.path:
            old = {key: values for key, values in old.items() if ".rules." in f".{key}"}  # the rest has another form now
        if re.search(r"ignore$", change.path):
            yield from _ignore_file(change)
            continue
        if change.path.endswith((".gitattributes", ".txt", ".in")):
            yield from _attributes(change)
            continue
        yield from _presets(change)
        fresh = _fresh_sections(old, new)
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                was = old.get(key)
                if was is not None and COLLECTS.search(key):
                    was = tuple(one for one in was if _top(one) not in left)  # no test is there any more
                yield from _one(change, key, was, new.get(key), moved, fresh=_section(key) in fresh)


def _retrying_plugin(change: Change) -> Iterator[Finding]:
    """Find a dependency that exists to run tests until they pass."""
    for line in added_lines(change):
        if re.search(r"\b(?:pytest-rerunfailures|pytest-retry|flaky|pytest-ignore-flaky|jest-retries|mocha-retry)\b", line.text):
            yield found("test-retried", change.path, line.number, "A plugin repeats tests until they pass.", line.text.strip())


def _top(place: str) -> str:
    return place.removeprefix("<rootDir>").lstrip("./").partition("/")[0]


def _fresh_sections(old: Settings, new: Settings) -> frozenset[str]:
    """Name the tools that are set up for the first time and asked for something: what they leave out was never asked."""
    had = {_section(key) for key in old}
    asked = {_section(key) for key in new if re.search(r"(?:^|\.)(?:select|extend-select|extends|strict|rules)(?:\.|$)", key)}
    return frozenset(asked - had - {""})


def _section(key: str) -> str:
    """Name the tool that a setting belongs to: `tool.ruff.lint.select` is ruff's."""
    return ".".join(key.split(".")[:2]) if key.startswith("tool.") else key.partition(".")[0]


def _presets(change: Change) -> Iterator[Finding]:
    """Count the rule sets that an ESLint config in code takes over."""
    if "eslint" not in change.path or change.new is None:
        return
    shape = re.compile(r"\w+\.configs\.\w+|configs\[['\"][\w/-]+['\"]\]")
    if len(shape.findall(change.new)) < len(shape.findall(change.old or "")):
        gone = set(shape.findall(change.old or "")) - set(shape.findall(change.new))
        yield found("gate-loosened", change.path, 1, "A set of lint rules is no longer used.", ", ".join(sorted(gone)))


def _one(
    change: Change,
    key: str,
    old: tuple[str, ...] | None,
    new: tuple[str, ...] | None,
    moved: Mapping[str, tuple[str, ...]],
    *,
    fresh: bool,
) -> Iterator[Finding]:
    line = _line(change, key)
    if key.startswith(("tool.unstuck", "unstuck.")):
        yield found(
            "own-settings-changed",
            change.path,
            line,
            f"{key} is changed: it says how this run is checked.",
            f"{old} → {new}",
        )
        return
    if NO_GATE.search(key):
        return
    if new is None and _leaf(key) in moved:
        new = moved[_leaf(key)]
    # A file that is new cannot loosen what was never asked; it can still hide tests.
    judges = _NEW_FILE if change.old is None or fresh else _ALL
    for judge in judges:
        for rule, says in judge(key, old, new):
            yield found(rule, change.path, line, says, f"{_shown(old)} → {_shown(new)}")
            return


Verdicts = Iterator[tuple[str, str]]
Values = tuple[str, ...] | None


def _minimum(key: str, old: Values, new: Values) -> Verdicts:
    if MINIMUM.search(key):
        before, after = _number(old), _number(new)
        if old is not None and before is not None and (after is None or (after < before and before >= 0)):
            yield "threshold-lowered", f"{key} asks for less than before."
        elif old and old[0] == "true" and (not new or new[0] != "true"):
            yield "threshold-lowered", f"{key} is switched off."


def _maximum(key: str, old: Values, new: Values) -> Verdicts:
    before, after = _number(old), _number(new)
    if MAXIMUM.search(key) and before is not None and (after is None or after > before):
        yield "threshold-lowered", f"{key} allows more than before."


def _ignores(key: str, old: Values, new: Values) -> Verdicts:
    if not IGNORES.search(key) or new is None:
        return
    fresh = [one for one in _entries(new) if one not in _entries(old or ())]
    serious = [
        one for one in fresh if not ARTEFACT.search(one) and not HARMLESS.search(one) and one not in RUFF_CONFLICTS
    ]
    if key.lower().endswith("omit"):
        serious = [one for one in serious if not UNMEASURED.search(one)]
    if re.search(r"per-file-ignores\..*(?:test|conftest)", key):
        serious = [one for one in serious if not FOR_TESTS.search(one)]
    if serious:
        hides = re.search(r"test\w*ignore|modulepath|norecurse|pytest", key, re.IGNORECASE) or (
            not re.search(r"cov|lint|ruff|flake8|mypy|ignores$|omit", key, re.IGNORECASE)
            and any(re.search(r"test|spec", one) for one in serious)
        )
        rule = "test-settings-narrowed" if hides else "gate-loosened"
        yield rule, f"{key} leaves out {', '.join(serious[:3])}."


def _choices(key: str, old: Values, new: Values) -> Verdicts:
    if not CHOICES.search(key) or old is None:
        return
    gone = [
        one
        for one in _entries(old)
        if one not in _entries(new or ()) and not any(one.startswith(other) for other in _entries(new or ()))
    ]
    if "ALL" in _entries(new or ()) or (
        re.search(r"plugins$|extends$|packages$", key) and new and len(new) >= len(old)
    ):
        return
    if re.search(r"source(?:_pkgs)?$", key) and new and len(new) >= len(old) and not any(
        re.search(r"test", one) or any(one.startswith(had) for had in gone) for one in new
    ):  # the package has another name now
        return
    fewer = [one for one in _entries(new or ()) if one.startswith("!") and one not in _entries(old)]
    if (gone or fewer) and not re.search(r"package-data|hatch|setuptools|^files$", key):
        yield "gate-loosened", f"{key} no longer holds {', '.join([*gone, *fewer][:3])}."


def _collects(key: str, old: Values, new: Values) -> Verdicts:
    if not COLLECTS.search(key) or (key.endswith("include") and "test" not in key and not old):
        return
    before, after = _entries(old or ()), _entries(new or ())
    if old is None:
        if after and not any(_takes_in_all(one) for one in after):
            yield "test-settings-narrowed", f"{key} is set to {', '.join(after[:3])}."
        return
    if new is None:
        return
    gone = [one for one in before if one not in after and not any(_wider(other, one) for other in after)]
    if gone:
        rule = "test-settings-narrowed"
        yield rule, f"{key} no longer holds {', '.join(gone[:3])}."


def _switches(key: str, old: Values, new: Values) -> Verdicts:
    before, after = (old or ("",))[0].lower(), (new or ("",))[0].lower()
    if STRICT.search(key) and (
        (before in {"true", "1", "error", "strict"} and after in {"false", "0", "off", ""})
        or (old is None and after == "false")
    ):
        yield "gate-loosened", f"{key} is switched off."
    elif LAX.search(key) and after in {"true", "1", "yes"} and before not in {"true", "1", "yes"}:
        if "ignore_missing_imports" in key and re.search(r"overrides|mypy-", key):
            return
        rule = (
            "always-green"
            if re.search(r"passwithnotests|ignore_outcome|failureignore|testfailures", key, re.IGNORECASE)
            else "gate-loosened"
        )
        yield rule, f"{key} is switched on."
    elif re.search(r"(?:linter|formatter|organizeimports|assist)\.enabled$", key, re.IGNORECASE) and after == "false" != before:
        yield "gate-loosened", f"{key} is switched off."
    elif (
        key.lower().endswith("follow_imports") and after in {"skip", "silent"} and before not in {"skip", "silent"}
    ) or (
        re.search(r"typecheckingmode|\.diagnostics$|ignorediagnostics|reportmissing|^report\w+", key, re.IGNORECASE)
        and after in {"off", "basic", "false", "none", "warning"}
        and before != after
    ):
        yield "gate-loosened", f"{key} is {after}."


_LEVELS = {"off": 0, "0": 0, "false": 0, "warn": 1, "1": 1, "warning": 1, "error": 2, "2": 2, "true": 2}


def _lint_rule(key: str, old: Values, new: Values) -> Verdicts:
    if not re.search(r"(?:^|\.)(?:rules|linter\.rules)\.", key):
        return
    before, after = _level(old), _level(new)
    if before is not None and (after is None or after < before) and before > 0:
        yield "gate-loosened", f"The lint rule {key.rpartition('rules.')[2]} is weaker than before."
    elif (
        re.search(r"complexity|max-", key)
        and old
        and new
        and len(old) > 1
        and len(new) > 1
        and (_number(new[1:]) or 0) > (_number(old[1:]) or 0)
    ):
        yield "threshold-lowered", f"The lint rule {key.rpartition('rules.')[2]} allows more than before."
    elif before is None and after == 0:
        yield "gate-loosened", f"The lint rule {key.rpartition('rules.')[2]} is switched off."


def _options(key: str, old: Values, new: Values) -> Verdicts:
    if not OPTIONS.search(key):
        return
    before, after = " ".join(old or ()), " ".join(new or ())
    ignored = [one for one in new or () if re.match(r"-\s", one) and one not in (old or ())]
    reason = (
        "a failing command is ignored"
        if ignored and "commands" in key
        else weakened(before, after, checks_something=True)
    )
    if reason:
        yield "test-settings-narrowed" if "addopts" in key else "always-green", f"{key}: {reason}."
        return
    gone = [one for one in re.findall(r"--strict\S*|-W\s*error|--doctest-modules", before) if one not in after]
    asked, asks = (re.search(r"--(?:cov-)?fail-under[= ]?(\d+)", text) for text in (before, after))
    if asked and (not asks or float(asks[1]) < float(asked[1])):
        gone.append(asked[0])
    if gone:
        yield "threshold-lowered", f"{key} no longer holds {gone[0]}."
    elif "commands" in key and old is not None and not set(before.split()) <= set(after.split()):
        yield "check-changed", f"{key} runs something else than before."


def _others(key: str, old: Values, new: Values) -> Verdicts:
    after = " ".join(new or ())
    if RETRIES.search(key) and (_number(new) or 0) > (_number(old) or 0):
        yield "test-retried", f"{key} repeats tests until they pass."
    elif (
        re.search(r"modulenamemapper|\.alias\b", key, re.IGNORECASE)
        and re.search(r"mock|stub|fake|empty|noop", after, re.IGNORECASE)
        and not ASSETS.search(key)
        and old != new
    ):
        yield "subject-mocked", f"{key} puts a stand-in in place of a module."
    elif (
        key.lower().endswith("filterwarnings")
        and any(one.startswith("error") for one in old or ())
        and not any(one.startswith("error") for one in new or ())
    ):
        yield "gate-loosened", "Warnings are no longer errors."
    elif re.search(r"preset|testrunner|runner$", key, re.IGNORECASE) and re.search(r"^\.{0,2}/", after) and old != new:
        yield "check-changed", f"{key} is a runner of the project's own."


def _wide_ignores(key: str, old: Values, new: Values) -> Verdicts:
    """Find in a new file, which may take the place of settings elsewhere, that everything is left out."""
    wide = [one for one in _entries(new or ()) if re.fullmatch(r"\*+(?:/\*+)*|\.|ALL|src(?:/\*+)*/?|[A-Z]", one)]
    if old is None and wide and IGNORES.search(key):
        yield "gate-loosened", f"{key} leaves out {wide[0]}."


_ALL = (_minimum, _maximum, _ignores, _choices, _collects, _switches, _lint_rule, _options, _others)
_NEW_FILE = (_collects, _options, _others, _wide_ignores)


def _ignore_file(change: Change) -> Iterator[Finding]:
    about_git = change.path.endswith(".gitignore")
    for line in added_lines(change):
        bare = line.text.strip()
        if bare.startswith(("#", "!")) or ARTEFACT.search(bare):
            continue
        if about_git and not re.search(r"(?:^|/)(?:tests?|specs?|__tests__)/?(?:\*+)?$|(?:^|/)\*?test_[\w*]*\.py$|\.(?:test|spec)\.[\w*]+$", bare):
            continue
        rule = "test-hidden" if about_git else "gate-loosened"
        yield found(
            rule, change.path, line.number, f"{bare} is left out from now on.", bare, "ask" if about_git else None
        )


def _attributes(change: Change) -> Iterator[Finding]:
    """Find attributes by which git shows or stores another text than the one that is there."""
    for line in added_lines(change):
        if re.search(r"\bfilter=(?!lfs\b)|\bdiff=(?!lfs|\w*(?:python|css|html|markdown))\w|(?:test|spec).*(?:-diff|binary|export-ignore)\b|merge=ours", line.text):
            says = "Git no longer shows this as it is."
            yield found("test-hidden", change.path, line.number, says, line.text.strip(), "ask")


def _takes_in_all(place: str) -> bool:
    """Tell whether a place or pattern of tests is about all of them, or singles some out."""
    folder, _, name = place.rstrip("/").rpartition("/")
    if "*" not in name and "." not in name.strip("."):
        return not folder or _COMMON.fullmatch(name) is not None or "*" in folder
    return all(_COMMON.fullmatch(word) for word in re.findall(r"[A-Za-z]+", name))


_COMMON = re.compile(r"(?i)_*(?:tests?|specs?|[cm]?[jt]sx?|jt|sx|x|py|src|lib|app|packages|checks?|e|cy|vue)_*")


def _wider(one: str, other: str) -> bool:
    trimmed = one.rstrip("*/").rstrip("/")
    return (bool(trimmed) and other.startswith(trimmed)) or one in {"**/*", ".", "*"}


def _entries(values: Sequence[str]) -> list[str]:
    parts = [part.strip("\"' ,") for value in values for part in re.split(r"[\n,](?![^{]*\})", value)]
    return [one for part in parts if part for one in _alternatives(part)]


def _alternatives(pattern: str) -> list[str]:
    """Write out `*.{js,ts}` and `*.[jt]s`."""
    found = re.search(r"\{([^{}]*,[^{}]*)\}|\[([a-z]{2,4})\](?=sx?\b)", pattern)
    if found is None or len(pattern) > 200:  # noqa: PLR2004 - no pattern is that long
        return [pattern]
    each = found[1].split(",") if found[1] is not None else list(found[2])
    return [one for part in each[:8] for one in _alternatives(pattern[: found.start()] + part + pattern[found.end() :])]


def _number(values: Values) -> float | None:
    match = re.search(r"-?\d+(?:\.\d+)?", values[0]) if values else None
    return float(match.group()) if match else None


def _level(values: Values) -> int | None:
    if not values:
        return None
    first = re.sub(r"[\[\]\"' ]", "", values[0].split(",")[0]).lower()
    return _LEVELS.get(first)


def _leaf(key: str) -> str:
    return key.rpartition(".")[2].lower()


def _line(change: Change, key: str) -> int:
    leaf = key.rpartition(".")[2].strip("[]")
    for number, line in enumerate((change.new or "").splitlines(), 1):
        if leaf and leaf in line:
            return number
    return 1


def _shown(values: Values) -> str:
    return "nothing" if values is None else ", ".join(values)[:120]
