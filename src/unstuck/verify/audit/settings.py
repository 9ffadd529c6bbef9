"""Gates may ask for more, not for less: settings are flattened to keys with values, and one table says which way is down."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from unstuck.verify.audit.change import Change, Finding, added_lines, found, removed_lines
from unstuck.verify.audit.part import part_of

LONGEST = 300_000
LONGEST_LINE = 600
Values = tuple[str, ...]
Settings = dict[str, Values]


def _(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_DOWN: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (_(r"fail[_-]?under|threshold|min(?:imum)?[_-]?(?:coverage|score|msi|covered\w*)|msi$|(?:^|[.\]])(?:statements|branches|functions|lines|target|perfile)$|coverage\.minimum|minimum$"), "floor", "threshold-lowered"),
    (_(r"max[_-]?(?:warnings|complexity|errors|statements|branches|args|locals|returns|depth|lines\w*)$|maxallowedviolations|baseline$"), "ceiling", "threshold-lowered"),
    (_(r"(?:test|module)path(?:ignore|_ignore)|norecurse|deselect|testignore|exclude(?:d)?(?:groups|tags|tests\w*|classnamepatterns)|test.*\.exclude|exclude_?tests?|(?:surefire|failsafe|testsuites?|testsuite).*exclude"), "leave_out", "test-settings-narrowed"),
    (_(r"exclu[ds]|ignore(?!d_outcome|failures|_missing|_errors)|omit|disable(?!_existing|allow)|suppress|nowarn|skip_?(?:paths|files|glob)?$|per-file-ignores|\.remove$|allow$"), "leave_out", "gate-loosened"),
    (_(r"testpaths|python_(?:files|classes|functions)|test(?:match|regex|_match|files|_pattern\w*|_paths)$|(?:jest|vitest|test|mocha|ava|spec)[\w.]*\.(?:include|files|spec|roots|projects)$|^spec$|testsuites?.*(?:directory|file)$"), "take_in", "test-settings-narrowed"),
    (_(r"(?:lint\.)?(?:extend-)?select$|enable(?:d[_-]rules)?$|linters\.enable|plugins$|^extends$|cov(?:erage)?[\w.]*\.(?:source|include|collectcoveragefrom)$|collectcoveragefrom$|warnings_?as_?errors$"), "take_in", "gate-loosened"),
    (_(r"(?:^|\.)strict\w*$|warn_\w+|disallow_\w+|check_untyped_defs|no_implicit_\w+|noimplicit\w*|nounused\w*|nouncheckedindex\w*|exactoptional\w*|xfail_strict|fail(?:on|ifno|_on)\w*|treatwarningsaserrors|checkonbuild|linter\.enabled|formatter\.enabled|verifysignatures|cov(?:erage)?.*enabled|error_on_\w+|bestpractices"), "strict", "gate-loosened"),
    (_(r"(?:^|\.)(?:autotests|autobenches|autoexamples|doctest|harness|istestproject|usejunitplatform)$|(?:^|\.)(?:lib|test|bin)(?:\.\[[^\]]*\])?\.test$"), "strict", "test-settings-narrowed"),
    (_(r"allow[_-]?failure\w*|continue-on-error"), "lax", "ci-changed"),
    (_(r"passwithnotests|allow[_-]?empty\w*|ignore_outcome|testfailureignore|ignorefailures|failureignore|exit[_-]zero|dangerouslyignore\w*"), "lax", "always-green"),
    (_(r"skip_?(?:tests|its|exec|test)$|maven\.test\.skip|skipsurefire|skipfailsafe|automock|\.only$"), "lax", "test-settings-narrowed"),
    (_(r"ignore_errors|ignore_missing_imports|skiplibcheck$|allowjs$|noemitonerror\.false|implicit_reexport|runanalyzers\.false|quiet$"), "lax", "gate-loosened"),
    (_(r"(?:^|\.)rules\.|\.diagnostic\.\w+\.severity$|(?:^|\.)lints?\.(?:rust|clippy)|^report\w+|typecheckingmode|phpstan.*level$|^(?:parameters\.)?level$"), "level", "gate-loosened"),
    (_(r"(?:^|\.)(?:(?:test\w*)?retr(?:y|ies)(?:times)?|reruns|rerunfailingtestscount)$"), "rise", "test-retried"),
)  # fmt: skip
"""Which settings have a direction: a key, which way is down, and the rule that it breaks."""
_WIDE = re.compile(r"\*+(?:/\*+)*|\.|ALL|src(?:/\*+)*/?|[A-Z]|lib(?:/\*+)*/?")
"""What leaves out everything."""
_HARMLESS = re.compile(
    r"(?i)node_modules|dist\b|build\b|coverage|\.venv|venv|__pycache__|\.git\b|\.tox|target\b|vendor|generated|\.min\.|migrations|\.next|out\b|\.cache|docs?\b|examples?\b|E501|W503|E203|COM812|ISC001|D20[35]|D21[23]|\.d\.ts|snapshots?\b|fixtures?\b|\.idea|tmp\b"
)
_LEVELS = {"off": 0, "0": 0, "false": 0, "none": 0, "allow": 0, "silent": 0, "basic": 1, "warn": 1, "warning": 1, "1": 1, "suggestion": 1, "error": 2, "2": 2, "true": 2, "deny": 2, "strict": 3, "forbid": 3}  # fmt: skip
_GREEN = re.compile(
    r"\|\|\s*(?:true\b|:|exit 0|echo\b)|;\s*(?:true|exit 0|:)\s*[\"']?,?$|\bset \+e\b|--passWithNoTests|--exit-zero|--pass-with-no-tests|\|\s*(?:cat|tee)\s*$"
    r"|-Dmaven\.test\.(?:skip|failure\.ignore)|-DskipTests|-DskipITs|\bignoreFailures\s*=?\s*true|testFailureIgnore>\s*true|--no-fail\b|--suppress-no-test-exit-code|\bgradlew?\b.*-x\s+\w*[tT]est|\btest\.enabled\s*=\s*false|\bonlyIf\s*\{\s*false"
)
_NARROW = re.compile(
    r"\bpytest\b.*(?:--ignore(?:-glob)?[= ]\S*(?:test|spec|\*)|--deselect|-k\s*=?['\"]?not\b|-m\s*=?['\"]?not\b|--lf\b|-p no:)|addopts.*(?:--ignore(?:-glob)?[= ]\S*(?:test|spec|\*)|--deselect|-k\b|-m\b|-p no:)|--testPathIgnorePatterns|--exclude-?(?:pattern|group|tag)\b|\bgo test\b.*(?:-skip|-run|-short)|\bcargo test\b.*(?:--skip|--exclude)"
    r"|--tag\s+~|\bctest\b.*\s-E\s|\bdotnet test\b.*--filter|\bmix test\b.*--exclude|excludeTestsMatching|exclude(?:Tags|Groups|Category)|<Compile Remove=.*[tT]est|(?<!-)\bexclude\b(?!-).*[tT]est|--no-cov\b|test_ignore|\bEXCLUDE_FROM_ALL\b"
)
_CHECKS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(shape))
    for name, shape in (
        ("tests", r"\b(?:node\b.*--test|py\.?test|jest|vitest|mocha|ava|tap|unittest|tox|nox|go test|cargo (?:test|nextest)|mvn\b.*\b(?:test|verify)|gradlew?\b.*\b(?:test|check|build)|dotnet test|rspec|rake (?:test|spec)|phpunit|pest|ctest|mix test|swift test|playwright test|cypress run|(?:npm|yarn|pnpm|bun) (?:-\S+ )*(?:run )?test\S*|make (?:test|check))\b|\badd_test\s*\(|discover_tests\s*\(|\benable_testing\s*\(|^\s*test\(|cc_test\("),
        ("lint", r"\b(?:ruff|flake8|pylint|eslint|golangci-lint|clippy|rubocop|phpcs|stylelint|biome|ktlint|detekt|swiftlint|credo|checkstyle|(?:npm|yarn|pnpm) (?:run )?lint)\b"),
        ("types", r"\b(?:mypy|pyright|tsc|phpstan|psalm|dialyzer|go vet|sorbet|(?:npm|yarn|pnpm) (?:run )?type\S*)\b"),
        ("format", r"\b(?:black|prettier|gofmt|rustfmt|cargo fmt|isort)\b"),
        ("coverage", r"\b(?:--cov\b|coverage (?:run|report)|nyc|c8|--coverage|codecov|jacoco)"),
    )
)  # fmt: skip
_DEPENDENCY = re.compile(
    r"(?i)(?:^|\.)(?:(?:dev|peer|optional|build|bundled?)?[-_]?dependenc\w*(?:-groups)?|require(?:-dev|s)?|requires-python|version|name|description|authors?|license\w*|keywords|homepage|urls|repository|classifiers"
    r"|main|module|types|exports|bin|files|entry[-_]points|packages|features|autoload|edition|rust-version|readme|maintainers|publishconfig|engines|private|workspace|optional-dependencies|go|replace|source)(?:\.|$)"
)


def judge_settings(changes: Sequence[Change]) -> Iterator[Finding]:
    """Find settings and commands that ask for less than before."""
    watched = [one for one in changes if part_of(one.path) in {"settings", "commands", "unknown"} and not one.binary]
    kept = {name for one in watched for line in added_lines(one) for name, shape in _CHECKS if shape.search(line.text)}
    for change in watched:
        if part_of(change.path) != "unknown" or re.search(r"\.(?:json|toml|ya?ml|ini|cfg|xml)$", change.path):
            yield from _keys(change, replaced=any(one is not change and one.new for one in watched))
            yield from _lines(change, kept)


def is_harmless(change: Change) -> bool:
    """Tell whether a change of a settings file is about the product alone: its dependencies, its name, its version."""
    if part_of(change.path) == "lock":
        return True
    if part_of(change.path) != "settings" or change.old is None or change.new is None or any(judge_settings([change])):
        return False
    old, new = flatten(change.path, change.old), flatten(change.path, change.new)
    return all(_DEPENDENCY.search(key) for key in {*old, *new} if old.get(key) != new.get(key))


def _keys(change: Change, *, replaced: bool) -> Iterator[Finding]:
    old, new = flatten(change.path, change.old), flatten(change.path, change.new)
    if change.new is None:
        if any(_direction(key) for key in old) and not replaced:
            yield found("gate-loosened", change.path, 1, f"{change.path}, which set what the checks ask for, is gone.")
        return
    for key in sorted({*old, *new}):
        if old.get(key) == new.get(key):
            continue
        row = _direction(key)
        reason = _WAYS[row[1]](old.get(key), new.get(key)) if row is not None else ""
        if change.old is None and row is not None and row[2] == "gate-loosened":
            reason = reason if any(_WIDE.fullmatch(one) for one in _entries(new[key])) else ""
        if row is not None and reason:
            line = _line_of(change.new, key)
            yield found(row[2], change.path, line, f"{key} {reason}.", f"{_show(old.get(key))} → {_show(new.get(key))}")


def _direction(key: str) -> tuple[re.Pattern[str], str, str] | None:
    if re.search(
        r"(?i)per-file-ignores.*test|dependenc|^scripts\.|classifiers|keywords|publishconfig|permissions|\.overrides\.|auto-changelog|healthcheck|build\.targets|package-data",
        key,
    ):
        return None
    return next((row for row in _DOWN if row[0].search(key)), None)


def _floor(old: Values | None, new: Values | None) -> str:
    before, after = _number(old), _number(new)
    if before is None or (new is None and before <= 0):
        return ""
    return "asks for less than before" if after is None or after < before else ""


def _ceiling(old: Values | None, new: Values | None) -> str:
    before, after = _number(old), _number(new)
    off = not before  # 0 and none: it allowed anything
    return "allows more than before" if not off and (after is None or after > (before or 0)) else ""


def _rise(old: Values | None, new: Values | None) -> str:
    return "is more than before" if (_number(new) or 0) > (_number(old) or 0) else ""


def _leave_out(old: Values | None, new: Values | None) -> str:
    fresh = [
        one
        for one in _entries(new)
        if one not in _entries(old) and not _HARMLESS.search(one) and one.lower() not in {"false", "true", ""}
    ]
    return f"leaves out {', '.join(fresh[:3])}" if fresh else ""


def _take_in(old: Values | None, new: Values | None) -> str:
    before, after = _entries(old), _entries(new)
    gone = [
        one
        for one in before
        if one not in after and not any(one.startswith(other.rstrip("*/")) for other in after if other.rstrip("*/"))
    ]
    if old is None and after and all(re.search(r"[\w-]+\.\w+$", one) and "*" not in one for one in after):
        return f"takes in nothing but {', '.join(after[:3])}"
    if "ALL" in after or "." in after:
        return ""
    if old is not None and new is not None and not after:
        return "takes in nothing"
    return f"no longer holds {', '.join(gone[:3])}" if gone and len(after) <= len(before) else ""


def _strict(old: Values | None, new: Values | None) -> str:
    before, after = (old or ("",))[0].lower(), (new or ("",))[0].lower()
    off = after in {"false", "0", "off", "no"}
    return (
        "is switched off" if (off and before != after) or (before in {"true", "1", "yes", "on"} and after == "") else ""
    )


def _lax(old: Values | None, new: Values | None) -> str:
    before, after = (old or ("",))[0].lower(), (new or ("",))[0].lower()
    return "is switched on" if after in {"true", "1", "yes", "on"} and before not in {"true", "1", "yes", "on"} else ""


def _level(old: Values | None, new: Values | None) -> str:
    before, after = (
        _LEVELS.get(re.sub(r"[\[\]\"' ]", "", (one or ("",))[0].split(",")[0]).lower()) for one in (old, new)
    )
    if before is None and after is None and (_number(old) or 0) > (_number(new) or 0) >= 0 and new is not None:
        return "is lower than before"
    lower = before is not None and before > 0 and (after is None or after < before)
    return "is weaker than before" if lower or (before is None and old is None and after == 0) else ""


_WAYS: dict[str, Callable[[Values | None, Values | None], str]] = {
    "floor": _floor, "ceiling": _ceiling, "rise": _rise, "leave_out": _leave_out, "take_in": _take_in, "strict": _strict, "lax": _lax, "level": _level,
}  # fmt: skip


def _lines(change: Change, kept: set[str]) -> Iterator[Finding]:
    """Find commands that are made to pass, that run less, or that are gone."""
    for line in added_lines(change):
        if len(line.text) > LONGEST_LINE or line.text.lstrip().startswith(("#", "//")):
            continue
        green = _GREEN.search(line.text)
        checks = any(shape.search(line.text) for _, shape in _CHECKS)
        rule, says = "", ""
        if green and (checks or not re.search(r"[|;]", green.group())):
            rule, says = "always-green", "A failing command is made to look like a success."
        elif _NARROW.search(line.text):
            rule, says = "test-settings-narrowed", "Fewer tests are run than before."
        elif re.match(r"\t-\s*\S", line.text) and checks:
            rule, says = "always-green", "The failure of a command is ignored."
        if rule:
            yield found(rule, change.path, line.number, says, line.text.strip())
    if change.old is None:
        return
    in_build_server = part_of(change.path) == "commands" and re.search(r"\.ya?ml$|Jenkinsfile", change.path) is not None
    told: set[str] = set()
    for line in removed_lines(change):
        if len(line.text) > LONGEST_LINE or line.text.lstrip().startswith(("#", "//")) or _is_declaration(line.text):
            continue
        gone = [name for name, shape in _CHECKS if shape.search(line.text) and name not in kept | told]
        if gone:
            told.update(gone)
            rule = "ci-changed" if in_build_server else "check-changed"
            yield found(
                rule, change.path, line.number, f"{change.path} no longer runs this ({gone[0]}).", line.text.strip()
            )


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


def _show(values: Values | None) -> str:
    return ", ".join(values)[:80] if values else "nothing"


def _line_of(text: str, key: str) -> int:
    last = key.rpartition(".")[2]
    return next((number for number, line in enumerate(text.splitlines(), 1) if last and last in line), 1)
