"""Judge changed commands: build servers, Makefiles, package scripts, hooks, and the scripts that the checks run."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from unstuck.verify.tamper.change import Change, Finding, Severity, added_lines, removed_lines, role
from unstuck.verify.tamper.flatten import flatten
from unstuck.verify.tamper.rules import found
from unstuck.verify.tamper.toolbox import does_the_same, families, installs, without_tidying

CHECKING = re.compile(
    r"\b(?:pytest|py\.test|unittest|tox|nox|jest|vitest|mocha|ava|playwright|cypress|node --test|(?:npm|pnpm|yarn|bun)(?: run)? (?:test|lint|check|type|build)[\w:-]*|npm t\b"
    r"|ruff|mypy|pyright|flake8|pylint|black|isort|bandit|eslint|tsc|prettier|biome|go (?:test|vet)|cargo (?:test|clippy|check)|mvn|gradlew?|rspec|phpunit|coverage"
    r"|make (?:test|check|lint|all)|just (?:test|check|lint)|pre-commit|dotnet test|tests?\b|lint\b|check\b)"
)
MOST_LINES = 300
"""Lines of one file that are compared with each other; a build has fewer."""
_WEAK = (
    (re.compile(r"\|\|\s*(?:true\b|:(?=\s|$|['\"])|exit 0|echo\b|/bin/true|\(exit 0\)|printf\b)"), "a failure is turned into success"),
    (re.compile(r";\s*(?:exit 0|true|echo\b[^;&|]*|:)\s*[\"']?,?\s*$"), "the last command decides, and it always succeeds"),
    (re.compile(r"\bset \+e\b|\bset \+o pipefail|\btrap ['\"]?exit 0"), "failures no longer stop the script"),
    (re.compile(r"--pass-?[wW]ith-?[nN]o-?[tT]ests"), "no tests at all count as success"),
    (re.compile(r"--exit-zero|--suppress-\w*fail\w*|--no-fail\b|--soft-fail|--ignore-failures?|--keep-going-success"), "failures are reported as success"),
    (re.compile(r"(?:^|\s)-k[ =]?['\"]?\(?\s*not\b|(?:^|\s)-m[ =]?['\"]?\(?\s*not\b"), "some tests are left out"),
    (re.compile(r"--deselect\b|--ignore(?:-glob)?[= ](?!\S*(?:node_modules|build|dist|venv|\.git|docs|examples))\S|--testPathIgnorePatterns|--exclude[= ]\S*test|--skip[= ]\S+|--invert\b"), "some tests are left out"),
    (re.compile(r"--testPathPatterns?\b|--findRelatedTests|--testNamePattern|--test-name-pattern|(?:^|\s)-t[ =]['\"]|--grep\b|(?:^|\s)-k[ =]\S"), "only some tests run"),
    (re.compile(r"--collect-only|(?:^|\s)--co(?=\s|$|['\"])|--listTests|--list-tests|--setup-only|--setup-plan|--version\b|--help\b|--dry-run|--no-run\b"), "nothing is run at all"),
    (re.compile(r"--last-failed\b|(?:^|\s)--lf(?=\s|$|['\"])|--onlyChanged\b|(?:^|\s)-o(?=\s|$)\b.*jest|--changed\b|--shard[= ]1/[2-9]"), "only some tests run"),
    (re.compile(r"--no-cov\b|--cov-fail-under[= ]?0\b|--coverage[= ]false|--no-coverage\b"), "coverage is no longer measured"),
    (re.compile(r"PYTHONOPTIMIZE|\bpython[\d.]*\s+-O+\b"), "assertions are switched off"),
    (re.compile(r"continue-on-error:\s*(?:true|\$\{\{\s*true)|allow_failure:\s*true|\bcontinueOnError:\s*true|soft_fail:\s*true|fail_ci_if_error:\s*false"), "a failing step counts as success"),
    (re.compile(r"\bif:\s*(?:\$\{\{\s*)?(?:false|'false'|always\(\) && false)"), "a step never runs"),
    (re.compile(r"ignore_outcome\s*=\s*true|success_codes\s*=|ignore_errors\s*=\s*true|ignore_exit_code|\bwarn\s*=\s*True"), "a failing command counts as success"),
    (re.compile(r"--updateSnapshot|--update-snapshots?|--snapshot-update|(?:jest|vitest)\b.*\s-u\b|--inline-snapshot=\S*fix|--force-regen"), "snapshots are rewritten on every run"),
    (re.compile(r"--reruns\b|--retries\b|--flaky\b|--retry[= ]\d|--force-flaky|--retry-times"), "tests are repeated until they pass"),
    (re.compile(r"--forceExit\b.*\|\||--bail=0.*\|\||--no-verify\b|--maxWorkers=0\b|\bHUSKY\s*[:=]\s*['\"]?0|(?<!\w)SKIP\s*[:=]\s*\S|PYTEST_ADDOPTS\s*[:=].*\s?(?:-k|-m|--deselect|--ignore|--co)\b"), "checks are passed over"),
    (re.compile(r"-p\s+no:\S+|--noconftest|-c\s+/dev/null|--confcutdir|--override-ini|(?:^|\s)-o\s+(?:addopts|testpaths|python_)"), "the runner's settings are overridden"),
    (re.compile(r"--no-?strict\b|--allow-untyped|--ignore-missing-imports|--skipLibCheck|--noEmitOnError false|--quiet\b.*eslint|eslint.*--quiet\b|--max-warnings[= ](?:-1|[1-9]\d+)"), "the tool complains about less"),
)  # fmt: skip
_NAMES = re.compile(
    r"^(?:pre|post)?(?:tests?|unit|check|checks|lint|types?|type-?check|format|fmt|build|ci|verify|validate|coverage|cov|e2e|integration|all|default|qa|gate|prepush|prepare-commit|ts|eslint|tsc|mypy|ruff)(?:[:_-].*)?$",
    re.IGNORECASE,
)
_CI = re.compile(r"\.ya?ml$|Jenkinsfile$|\.husky/|\.githooks/")
_HIDES = re.compile(r"(?<!\|)\|\s*(?:tee|cat|head|tail|grep|sed|awk)\b")


def weakened(before: str, after: str, *, checks_something: bool) -> str:
    """Say how a command became weaker; empty where it did not."""
    before, after = without_tidying(before), without_tidying(after)
    if not checks_something and not CHECKING.search(after):
        return ""
    for shape, reason in _WEAK:
        if len(shape.findall(after)) > len(shape.findall(before)):
            return reason
    if _HIDES.search(after) and not _HIDES.search(before) and "pipefail" not in after and CHECKING.search(after):
        return "a pipe hides its failure"
    return ""


def judge_commands(changes: Sequence[Change], checks: Sequence[str]) -> Iterator[Finding]:
    """Judge every file that holds commands."""
    ci_lines = Counter(_bare(line) for change in changes if _is_ci(change) for line in (change.new or "").splitlines())
    for change in changes:
        if change.path.endswith("package.json"):
            yield from _scripts(change, checks)
        elif role(change.path) != "commands":
            if _is_check_program(change.path, checks):
                yield from _script_file(change, checks)
        elif _is_ci(change):
            yield from _build_server(change, ci_lines)
        elif re.search(r"(?:akefile|ustfile|\.mk)$", change.path):
            yield from _targets(change, checks)
        else:
            yield from _script_file(change, checks)


def _is_check_program(path: str, checks: Sequence[str]) -> bool:
    """Tell whether a check starts this program, and it only exists to check."""
    named = re.search(
        r"(?:^|/)(?:scripts?|tools?|ci|hack|dev|bin|checks?)/|(?:check|verify|lint|validate|gate)[^/]*$", path
    )
    return named is not None and role(path) in {"product", "other"} and any(path in command for command in checks)


def _scripts(change: Change, checks: Sequence[str]) -> Iterator[Finding]:
    old = {
        key: " ".join(values) for key, values in flatten(change.path, change.old).items() if key.startswith("scripts.")
    }
    new = {
        key: " ".join(values) for key, values in flatten(change.path, change.new).items() if key.startswith("scripts.")
    }
    yield from _compare(
        change, {key[8:]: text for key, text in old.items()}, {key[8:]: text for key, text in new.items()}, checks
    )


_REFERENCE = re.compile(r"(?:npm|pnpm|yarn|bun)(?: run)? (?!run\b)([\w:.-]+)(?: --(?= ))?")


def _resolved(name: str, scripts: Mapping[str, str]) -> str:
    """Give a script with the scripts written out that it runs."""
    text = scripts[name]
    for _ in range(3):
        text = _REFERENCE.sub(lambda part: scripts.get(part[1], part[0]) if part[1] != name else part[0], text)[:2000]
    return text


def _targets(change: Change, checks: Sequence[str]) -> Iterator[Finding]:
    old, new = _recipes(change.old or ""), _recipes(change.new or "")
    yield from _compare(change, old, new, checks)
    for line in added_lines(change):
        if re.match(r"\.IGNORE\b|MAKEFLAGS\s*[+:]?=.*(?:-i|-k|--ignore-errors)|SHELL\s*:?=.*true", line.text):
            yield found(
                "always-green", change.path, line.number, "Failing commands count as success.", line.text.strip()
            )


def _recipes(text: str) -> dict[str, str]:
    found_recipes: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        match = re.match(r"([\w./%-]+)(?:\s[\w=*+\"'\s-]*)?:(?!=)\s*(.*)$", line)
        if match and not line[:1].isspace():
            name = match[1]
            found_recipes.setdefault(name, []).extend(match[2].split("#")[0].split())
        elif line[:1].isspace() and name and line.strip() and not line.strip().startswith("#"):
            found_recipes[name].append(line.strip())
    return {name: "\n".join(part for part in lines if part) for name, lines in found_recipes.items()}


def _compare(
    change: Change, old: Mapping[str, str], new: Mapping[str, str], checks: Sequence[str]
) -> Iterator[Finding]:
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        used = any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", command) for command in checks)
        does = without_tidying(before or after or "")
        matters = used or _NAMES.match(name) is not None or CHECKING.search(does) is not None
        if not matters:
            continue
        line = _line_of(change.new or change.old or "", name)
        if before is None:
            reason = weakened("", after or "", checks_something=False)
            if reason:
                yield found("always-green", change.path, line, f"{name}: {reason}.", after or "", "ask")
            continue
        if after is None:
            if not any(before == other for key, other in new.items() if key not in old):
                yield found("check-changed", change.path, line, f"{name} is gone.", before)
            continue
        if _resolved(name, old) != _resolved(name, new):
            yield from _edited(change, name, _resolved(name, old), _resolved(name, new), line)


def _edited(change: Change, name: str, before: str, after: str, line: int) -> Iterator[Finding]:
    reason = weakened(before, after, checks_something=True)
    ignored, had = (re.findall(r"^@?-(?!-)", without_tidying(text), re.MULTILINE) for text in (after, before))
    if not reason and len(ignored) > len(had):
        reason = "its failure is ignored"
    if reason:
        yield found("always-green", change.path, line, f"{name}: {reason}.", f"{before} → {after}")
    elif not _only_more(before, after):
        built = re.match(r"(?:pre|post)?(?:build|format|fmt|compile|bundle|default|all)\b", name) and not families(
            before
        )
        same = does_the_same(before, after) or (built and not _NOTHING.search(after))
        weight: Severity | None = "warn" if same else None
        says = f"{name} runs something else than before."
        yield found("check-changed", change.path, line, says, f"{before} → {after}", weight)


_NOTHING = re.compile(r"^\s*(?:echo\b|true\b|:|exit\b|node -e\b)")


def _only_more(before: str, after: str) -> bool:
    """Tell whether a command only got more options, or more commands that must also succeed."""
    steps = [step.split() for step in re.split(r"&&|\n", after)]
    for step in re.split(r"&&|\n", before):
        words = step.split()
        if words and not any(_longer(words, other) for other in steps):
            return False
    return True


def _longer(words: list[str], other: list[str]) -> bool:
    extra = Counter(other) - Counter(words)
    if Counter(words) - Counter(other):
        return False
    return all(
        re.match(r"-|[A-Z_]+=|cross-env$|\d+$|auto$|text|lcov|json|html|default$|verbose$|short$", word)
        for word in extra
    )


def _is_ci(change: Change) -> bool:
    return role(change.path) == "commands" and _CI.search(change.path) is not None


def _bare(line: str) -> str:
    return re.sub(r"^(?:- )?(?:run:\s*)?[|>]?-?\s*", "", line.strip()).strip("\"'")


_EXEMPT = re.compile(
    r"^(?:- )?(?:name|uses|repo|rev|runs-on|python-version|node-version|go-version|image|key|version|timeout-minutes|cache|id|restore-keys|path|with|env|description|default)\s*:|^#|^\W*$|^[\w@./-]+@v?\d"
)


_TRIGGER = re.compile(
    r"^(?:on|push|pull_request|branches|pull_request_target|merge_group|schedule|rules|when|only|trigger)\b"
)


def _build_server(change: Change, present: Counter[str]) -> Iterator[Finding]:
    if change.new is None:
        kept = sum(1 for line in (change.old or "").splitlines() if _bare(line) and present[_bare(line)])
        if kept * 2 < len([line for line in (change.old or "").splitlines() if line.strip()]):
            yield found("ci-changed", change.path, 1, "A file of the build server is deleted.", "", "reject")
        return
    before = change.old or ""
    for line in added_lines(change):
        reason = next((why for shape, why in _WEAK if shape.search(line.text)), "") or weakened(
            "", line.text, checks_something=False
        )
        nested = re.search(r"(?:continue-on-error|allow_failure|if):", line.text)
        if reason and (nested or CHECKING.search(line.text) or CHECKING.search(before)):
            if not re.search(r"\b(?:rm|mkdir|kill|docker|cp|mv|apt|brew|curl)\b[^|]*\|\|", line.text):
                yield found("always-green", change.path, line.number, f"The build server: {reason}.", line.text.strip())
        elif change.old is not None and re.search(
            r"(?:paths|branches|tags)-ignore:|^\s*exclude:|when:\s*manual|\bskip:\s*\[?\w|^\s*exclude\s*:|stages:\s*\[manual",
            line.text,
        ):
            yield found(
                "ci-changed",
                change.path,
                line.number,
                "The build server runs less often, or on less.",
                line.text.strip(),
            )
    yield from _conditions(change)
    fresh = [_bare(line.text) for line in islice(added_lines(change), MOST_LINES)]
    for line in islice(removed_lines(change), MOST_LINES):
        bare = _bare(line.text)
        hook = re.match(r"- id:", line.text.strip()) and "pre-commit" in change.path
        if (_EXEMPT.search(line.text.strip()) and not hook) or present[bare] or _still_runs(bare, present):
            continue
        if installs(bare) or any(does_the_same(bare, other) for other in fresh):
            continue
        weight: Severity = "reject" if CHECKING.search(bare) or hook else "ask" if _TRIGGER.search(bare) else "warn"
        yield found("ci-changed", change.path, line.number, "The build server no longer does this.", bare, weight)


def _conditions(change: Change) -> Iterator[Finding]:
    """Find conditions put onto steps that were there before; new steps may have theirs."""
    fresh = list(added_lines(change))
    if change.old is None or any(re.search(r"\b(?:uses|run|runs-on|script):", line.text) for line in fresh):
        return
    for line in fresh:
        always = re.search(r"(?:always|failure|success|cancelled)\(\)\s*\}*\s*$", line.text)
        if re.match(r"\s*(?:- )?if:", line.text) and not always:
            yield found("ci-changed", change.path, line.number, "A step runs on a condition only.", line.text.strip())


def _still_runs(bare: str, present: Counter[str]) -> bool:
    words = bare.replace(",", " ").replace("[", " ").replace("]", " ").split()
    if re.match(r"[\w-]+: \[", bare):  # a list of versions or triggers that only grew
        return any(
            line.startswith(words[0]) and not Counter(words) - Counter(re.sub(r"[,\[\]]", " ", line).split())
            for line in present
        )
    words = bare.split()
    alike = islice((line for line in present if words and line.startswith(words[0])), MOST_LINES)
    return any(_longer(words, line.split()) for line in alike)


def _script_file(change: Change, checks: Sequence[str]) -> Iterator[Finding]:
    name = change.path.rpartition("/")[2]
    used = any(
        change.path in command or re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", command) for command in checks
    )
    checking = used or CHECKING.search(change.old or "") is not None
    if change.old is not None and change.new is None:
        if used:
            yield found("check-changed", change.path, 1, "A script that a check runs is deleted.")
        return
    for line in added_lines(change):
        reason = weakened("", line.text, checks_something=used)
        if checking and re.match(r"\s*set \+e\b", line.text):
            reason = "failures no longer stop the script"
        plain_exit = checking and re.match(r"\s*(?:exit 0|return 0|sys\.exit\(0\))\s*$", line.text)
        if reason or (plain_exit and change.old is not None):
            yield found(
                "always-green",
                change.path,
                line.number,
                f"{name}: {reason or 'it ends with success whatever happened'}.",
                line.text.strip(),
            )
            return
    if change.old is None:
        return
    lost = [
        line for line in removed_lines(change) if CHECKING.search(line.text) and not line.text.strip().startswith("#")
    ]
    kept = [line.split() for line in (change.new or "").splitlines()]
    gone = [line for line in lost if not any(_longer(line.text.split(), other) for other in kept)]
    if gone or (used and change.old != change.new and not _only_more(change.old, change.new or "")):
        line_number = gone[0].number if gone else 1
        evidence = gone[0].text.strip() if gone else ""
        yield found(
            "check-changed",
            change.path,
            line_number,
            f"{name} checks something else than before.",
            evidence,
            None if used else "ask",
        )
    elif (
        change.old_mode is not None
        and change.new_mode is not None
        and used
        and change.old_mode & 0o111
        and not change.new_mode & 0o111
    ):
        yield found("check-changed", change.path, 1, f"{name} can no longer be run.")


def _line_of(text: str, name: str) -> int:
    return next((number for number, line in enumerate(text.splitlines(), 1) if name in line), 1)
