"""Judge changed settings of test runners, linters, type checkers and coverage: does a gate ask for less?"""

import re
from collections.abc import Iterator, Mapping, Sequence

from unstuck.core.tamper.change import Change, Finding, added_lines
from unstuck.core.tamper.commands import weakened
from unstuck.core.tamper.flatten import flatten
from unstuck.core.tamper.rules import found

_NO_GATE = re.compile(r"^(?:scripts|dependencies|devdependencies|peerdependencies|project|build-system|name|version|description|repository|author|keywords|engines)(?:\.|$)|\.(?:dependencies|classifiers)\b", re.IGNORECASE)
_MINIMUM = re.compile(r"fail[_-]under|coveragethreshold|thresholds?(?:\.|$)|min[_-]?coverage|check-coverage|^(?:branches|functions|lines|statements)$|status\.\w+\.\w*\.?target|\.target$|interrogate", re.IGNORECASE)
_MAXIMUM = re.compile(r"max[_-]?(?:complexity|warnings|args|branches|statements|returns|locals|attributes|nested|bool|positional|public|parents|depth|lines)", re.IGNORECASE)
_IGNORES = re.compile(
    r"(?:^|\.)(?:omit|exclude|extend-exclude|force-exclude|ignore|extend-ignore|(?:extend-)?per-file-ignores(?:\..*)?|disable|disable_error_code|exclude_lines"
    r"|exclude_also|ignorepatterns|ignores|coveragepathignorepatterns|testpathignorepatterns|modulepathignorepatterns|norecursedirs"
    r"|exclude_dirs|skips|unfixable|ignore-words-list|ignored-modules|ignored-classes|ignore-paths|ignore-patterns|watchpathignorepatterns)$",
    re.IGNORECASE,
)
_CHOICES = re.compile(r"(?:^|\.)(?:select|extend-select|enable|enable_error_code|collectcoveragefrom|extends|plugins|files|packages|source|source_pkgs)$", re.IGNORECASE)
_COLLECTS = re.compile(r"(?:^|\.)(?:testpaths|python_files|python_functions|python_classes|testmatch|testregex|include|roots|projects|spec|test\.include|testdir)$", re.IGNORECASE)
_STRICT = re.compile(
    r"(?:^|\.)(?:strict\w*|disallow_\w+|check_untyped_defs|warn_\w+|no_implicit_\w+|noimplicit\w+|nounused\w+|nounchecked\w+|nofallthrough\w+|checkjs|xfail_strict"
    r"|branch|alwaysstrict|useunknownincatchvariables|exactoptionalpropertytypes|preview|noemitonerror|errorondeprecated|all)$",
    re.IGNORECASE,
)
_LAX = re.compile(
    r"(?:^|\.)(?:ignore_errors|ignore_missing_imports|skiplibcheck|passwithnotests|allow_untyped_\w+|exit-zero|testfailureignore|ignoretestfailures"
    r"|dangerouslyignoreunhandlederrors|allowonly|ignorebuilderrors|ignoreduringbuilds|transpileonly|informational|ignore_outcome|continue_on_failure|implicit_reexport|skip_covered_fail|no-fail)$",
    re.IGNORECASE,
)
_RETRIES = re.compile(r"(?:^|\.)(?:retry|retries|reruns|retrytimes)$", re.IGNORECASE)
_OPTIONS = re.compile(r"(?:^|\.)(?:addopts|args|commands|command|pytest_args|additional_args)$", re.IGNORECASE)
_ARTEFACT = re.compile(
    r"(?:^|[/*^!'\"])(?:dist|build|out|node_modules|coverage|\.?venv|env|\.next|\.nuxt|\.turbo|\.cache|vendor|migrations|generated|__generated__|__pycache__|\.git|\.tox|\.nox|lib|public|htmlcov|\.mypy_cache|\.ruff_cache|storybook-static|_version\.py|\.svelte-kit|target|site)(?:$|[/*.'\"])"
    r"|\.(?:min\.js|d\.ts|lock|generated\.\w+|pb2?\.py|log|pyc)$|_pb2",
    re.IGNORECASE,
)
_HARMLESS = re.compile(r"TYPE_CHECKING|__repr__|NotImplementedError|__main__|pragma: no cover|abstractmethod|\.\.\.$|Protocol|overload")
_ASSETS = re.compile(r"css|less|scss|sass|svg|png|jpg|gif|ttf|woff|@/|\^~|\(\.\*\)", re.IGNORECASE)
_RUFF_CONFLICTS = frozenset({"COM812", "ISC001", "D203", "D212", "D213", "W503", "E203", "W191", "E111", "E114", "E117", "Q000", "Q001", "Q002", "Q003"})


def judge_settings(changes: Sequence[Change]) -> Iterator[Finding]:
    """Judge all changed settings files together, since settings move from one file to another."""
    pairs = [(change, flatten(change.path, change.old), flatten(change.path, change.new)) for change in changes]
    moved: dict[str, tuple[str, ...]] = {}
    for _, old, new in pairs:
        for key, values in new.items():
            if key not in old:
                moved.setdefault(_leaf(key), values)
    for change, old, new in pairs:
        if re.search(r"ignore$", change.path):
            yield from _ignore_file(change)
            continue
        yield from _presets(change)
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                yield from _one(change, key, old.get(key), new.get(key), moved)


def _presets(change: Change) -> Iterator[Finding]:
    """Count the rule sets that an ESLint config in code takes over."""
    if "eslint" not in change.path or change.new is None:
        return
    shape = re.compile(r"\w+\.configs\.\w+|configs\[['\"][\w/-]+['\"]\]")
    if len(shape.findall(change.new)) < len(shape.findall(change.old or "")):
        gone = set(shape.findall(change.old or "")) - set(shape.findall(change.new))
        yield found("gate-loosened", change.path, 1, "A set of lint rules is no longer used.", ", ".join(sorted(gone)))


def _one(change: Change, key: str, old: tuple[str, ...] | None, new: tuple[str, ...] | None, moved: Mapping[str, tuple[str, ...]]) -> Iterator[Finding]:
    line = _line(change, key)
    if key.startswith(("tool.unstuck", "unstuck.")):
        yield found("own-settings-changed", change.path, line, f"{key} is changed: it says how this run is checked.", f"{old} → {new}")
        return
    if _NO_GATE.search(key):
        return
    if new is None and _leaf(key) in moved:
        new = moved[_leaf(key)]
    # A file that is new cannot loosen what was never asked; it can still hide tests.
    judges = _ALL if change.old is not None else _NEW_FILE
    for judge in judges:
        for rule, says in judge(key, old, new):
            yield found(rule, change.path, line, says, f"{_shown(old)} → {_shown(new)}")
            return


Verdicts = Iterator[tuple[str, str]]
Values = tuple[str, ...] | None


def _minimum(key: str, old: Values, new: Values) -> Verdicts:
    if _MINIMUM.search(key):
        before, after = _number(old), _number(new)
        if old is not None and before is not None and (after is None or (after < before and before >= 0)):
            yield "threshold-lowered", f"{key} asks for less than before."
        elif old and old[0] == "true" and (not new or new[0] != "true"):
            yield "threshold-lowered", f"{key} is switched off."


def _maximum(key: str, old: Values, new: Values) -> Verdicts:
    before, after = _number(old), _number(new)
    if _MAXIMUM.search(key) and before is not None and (after is None or after > before):
        yield "threshold-lowered", f"{key} allows more than before."


def _ignores(key: str, old: Values, new: Values) -> Verdicts:
    if not _IGNORES.search(key) or new is None:
        return
    fresh = [one for one in _entries(new) if one not in _entries(old or ())]
    serious = [one for one in fresh if not _ARTEFACT.search(one) and not _HARMLESS.search(one) and one not in _RUFF_CONFLICTS]
    if serious:
        rule = "test-settings-narrowed" if re.search(r"test|norecurse", key, re.IGNORECASE) or any(re.search(r"test|spec", one) for one in serious if "cov" not in key.lower() and "ruff" not in key and "lint" not in key) else "gate-loosened"
        yield rule, f"{key} leaves out {', '.join(serious[:3])}."


def _choices(key: str, old: Values, new: Values) -> Verdicts:
    if not _CHOICES.search(key) or old is None:
        return
    gone = [one for one in _entries(old) if one not in _entries(new or ()) and not any(one.startswith(other) for other in _entries(new or ()))]
    if "ALL" in _entries(new or ()) or re.search(r"plugins$|extends$|packages$", key) and new and len(new) >= len(old):
        return
    fewer = [one for one in _entries(new or ()) if one.startswith("!") and one not in _entries(old)]
    if (gone or fewer) and not re.search(r"package-data|hatch|setuptools|^files$", key):
        yield "gate-loosened", f"{key} no longer holds {', '.join([*gone, *fewer][:3])}."


def _collects(key: str, old: Values, new: Values) -> Verdicts:
    if not _COLLECTS.search(key) or (key.endswith("include") and "test" not in key and not old):
        return
    before, after = _entries(old or ()), _entries(new or ())
    if old is None:
        wide = any(re.search(r"^\.?/?(?:tests?|spec|src|packages|__tests__|\.)/?$|\*\*|test_\*|\*_test|^test|^Test", one) for one in after)
        if not wide and after:
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
    if _STRICT.search(key) and ((before in {"true", "1", "error", "strict"} and after in {"false", "0", "off", ""}) or (old is None and after == "false")):
        yield "gate-loosened", f"{key} is switched off."
    elif _LAX.search(key) and after in {"true", "1", "yes"} and before not in {"true", "1", "yes"}:
        if "ignore_missing_imports" in key and re.search(r"overrides|mypy-", key):
            return
        rule = "always-green" if re.search(r"passwithnotests|ignore_outcome|failureignore|testfailures", key, re.IGNORECASE) else "gate-loosened"
        yield rule, f"{key} is switched on."
    elif key.lower().endswith("follow_imports") and after in {"skip", "silent"} and before not in {"skip", "silent"}:
        yield "gate-loosened", f"{key} is {after}."
    elif re.search(r"typecheckingmode|\.diagnostics$|ignorediagnostics|reportmissing|^report\w+", key, re.IGNORECASE) and after in {"off", "basic", "false", "none", "warning"} and before != after:
        yield "gate-loosened", f"{key} is {after}."


_LEVELS = {"off": 0, "0": 0, "false": 0, "warn": 1, "1": 1, "warning": 1, "error": 2, "2": 2, "true": 2}


def _lint_rule(key: str, old: Values, new: Values) -> Verdicts:
    if not re.search(r"(?:^|\.)(?:rules|linter\.rules)\.", key):
        return
    before, after = _level(old), _level(new)
    if before is not None and (after is None or after < before) and before > 0:
        yield "gate-loosened", f"The lint rule {key.rpartition('rules.')[2]} is weaker than before."
    elif re.search(r"complexity|max-", key) and old and new and len(old) > 1 and len(new) > 1 and (_number(new[1:]) or 0) > (_number(old[1:]) or 0):
        yield "threshold-lowered", f"The lint rule {key.rpartition('rules.')[2]} allows more than before."
    elif before is None and after == 0:
        yield "gate-loosened", f"The lint rule {key.rpartition('rules.')[2]} is switched off."


def _options(key: str, old: Values, new: Values) -> Verdicts:
    if not _OPTIONS.search(key):
        return
    before, after = " ".join(old or ()), " ".join(new or ())
    ignored = [one for one in new or () if re.match(r"-\s", one) and one not in (old or ())]
    reason = "a failing command is ignored" if ignored and "commands" in key else weakened(before, after, checks_something=True)
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
    if _RETRIES.search(key) and (_number(new) or 0) > (_number(old) or 0):
        yield "test-retried", f"{key} repeats tests until they pass."
    elif re.search(r"modulenamemapper|\.alias\b", key, re.IGNORECASE) and re.search(r"mock|stub|fake|empty|noop", after, re.IGNORECASE) and not _ASSETS.search(key) and old != new:
        yield "subject-mocked", f"{key} puts a stand-in in place of a module."
    elif key.lower().endswith("filterwarnings") and any(one.startswith("error") for one in old or ()) and not any(one.startswith("error") for one in new or ()):
        yield "gate-loosened", "Warnings are no longer errors."
    elif re.search(r"preset|testrunner|runner$", key, re.IGNORECASE) and re.search(r"^\.{0,2}/", after) and old != new:
        yield "check-changed", f"{key} is a runner of the project's own."


_ALL = (_minimum, _maximum, _ignores, _choices, _collects, _switches, _lint_rule, _options, _others)
_NEW_FILE = (_collects, _options, _others)


def _ignore_file(change: Change) -> Iterator[Finding]:
    about_git = change.path.endswith(".gitignore")
    for line in added_lines(change):
        bare = line.text.strip()
        if bare.startswith(("#", "!")) or _ARTEFACT.search(bare):
            continue
        if about_git and not re.search(r"(?:^|/)(?:tests?|specs?|__tests__)/?(?:\*+)?$|test_|\.(?:test|spec)\.", bare):
            continue
        rule = "test-hidden" if about_git else "gate-loosened"
        yield found(rule, change.path, line.number, f"{bare} is left out from now on.", bare, "ask" if about_git else None)


def _wider(one: str, other: str) -> bool:
    trimmed = one.rstrip("*/").rstrip("/")
    return (bool(trimmed) and other.startswith(trimmed)) or one in {"**/*", ".", "*"}


def _entries(values: Sequence[str]) -> list[str]:
    return [part.strip("\"' ,") for value in values for part in re.split(r"[\n,]", value) if part.strip("\"' ,")]


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
