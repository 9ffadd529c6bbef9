"""What makes a single setting ask for less than before: a table of small judges, each for one sort of setting."""

import re
from collections.abc import Iterator, Sequence

from unstuck.verify.tamper.commands import weakened
from unstuck.verify.tamper.gates import (
    ARTEFACT,
    ASSETS,
    CHOICES,
    COLLECTS,
    FOR_TESTS,
    HARMLESS,
    HOOKS,
    IGNORES,
    LAX,
    MAXIMUM,
    MINIMUM,
    OPTIONS,
    RETRIES,
    RUFF_CONFLICTS,
    STRICT,
    UNMEASURED,
)
from unstuck.verify.tamper.toolbox import families

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
    if (
        re.search(r"source(?:_pkgs)?$", key)
        and new
        and len(new) >= len(old)
        and not any(re.search(r"test", one) or any(one.startswith(had) for had in gone) for one in new)
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
    elif (
        re.search(r"(?:linter|formatter|organizeimports|assist)\.enabled$", key, re.IGNORECASE)
        and after == "false" != before
    ):
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
    elif key.lower().endswith("automock") and after == "true" and old != new:
        yield "subject-mocked", f"{key} replaces every module by a stand-in."
    elif HOOKS.search(key) and old and not families(" ".join(old)) <= families(after):
        yield "check-changed", f"{key} no longer runs {' '.join(old)}."
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


EVERY = (_minimum, _maximum, _ignores, _choices, _collects, _switches, _lint_rule, _options, _others)
OF_NEW_FILES = (_collects, _options, _others, _wide_ignores)


def _takes_in_all(place: str) -> bool:
    """Tell whether a place or pattern of tests is about all of them, or singles some out."""
    folder, _, name = place.rstrip("/").rpartition("/")
    if "*" not in name and "." not in name.strip("."):
        return not folder or _COMMON.fullmatch(name) is not None or "*" in folder
    return all(_COMMON.fullmatch(word) for word in re.findall(r"[A-Za-z]+", name))


_COMMON = re.compile(
    r"(?i)_*(?:tests?|specs?|[cm]?[jt]sx?|jt|sx|x|py|src|lib|app|packages|checks?|e|cy|vue|e2e|cypress|playwright|integration)_*"
)


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
