"""Whether a test still runs, alone or among the others, often enough, and against the real thing."""

import re
from collections.abc import Iterator, Sequence

from unstuck.verify.tamper.change import Finding, Severity, collected, language
from unstuck.verify.tamper.rules import found
from unstuck.verify.tamper.suite import NOTHING, Case, Patch, Suite

OUTSIDE = frozenset({
    "requests", "httpx", "aiohttp", "urllib", "urllib3", "time", "datetime", "os", "sys", "random", "smtplib",
    "boto3", "botocore", "redis", "socket", "subprocess", "uuid", "secrets", "builtins", "logging", "pathlib",
    "shutil", "tempfile", "json", "io", "asyncio", "threading", "getpass", "platform", "locale", "signal",
    "sqlite3", "psycopg2", "sqlalchemy", "django", "flask", "fastapi", "stripe", "openai", "anthropic", "numpy",
    "pandas", "torch", "webbrowser", "http", "ssl", "ftplib", "axios", "node-fetch", "fs", "path", "crypto",
    "process", "console", "window", "document", "global", "globalThis", "Date", "Math", "fetch", "nodemailer",
    "pg", "mysql", "mongoose", "ioredis", "react", "next", "localStorage", "sessionStorage", "navigator",
})  # fmt: skip
"""What lies outside the project: to replace it in a test is good manners."""


def judge_standing(
    pairs: Sequence[tuple[Case, Case | None]], fresh: Sequence[Case], checks: Sequence[str]
) -> Iterator[Finding]:
    """Judge each old test by what it became, and each new one by itself."""
    skipped: dict[str, list[Finding]] = {}
    running: set[str] = set()
    for case, became in pairs:
        if became is None or case.kind != "test":
            continue
        was_off = bool(case.hidden) or bool(case.skip and not case.skip_is_conditional)
        yield from _hidden(case, became, checks)
        finding = _newly_skipped(case, became)
        if finding is not None and not was_off:
            skipped.setdefault(became.path, []).append(finding)
        elif not became.skip:
            running.add(became.path)
        if became.focused and not case.focused:
            yield found("test-focused", became.path, became.line, f"Only {became.name} is told to run.")
        if became.retries and not case.retries:
            yield found(
                "test-retried", became.path, became.line, f"{became.name} is repeated until it passes.", became.retries
            )
        yield from _fewer_cases(case, became, fresh)
    for path, findings in skipped.items():
        all_of_them = path not in running and len(findings) > 1
        for one in findings:
            yield (
                found("tests-all-skipped", one.path, one.line, one.says, one.evidence, one.severity)
                if all_of_them
                else one
            )
    for case in fresh:
        yield from _new_test(case)


def judge_mocks(old: Sequence[Suite], new: Sequence[Suite]) -> Iterator[Finding]:
    """Find tests that now replace what they test."""
    known = {(patch.target, patch.names) for suite in old for patch in _all_patches(suite)}
    before = {suite.path: suite for suite in old}
    fixtures = {case.name: case.patches for suite in new for case in suite.cases if case.kind == "aid" and case.patches}
    for suite in new:
        yield from _defined_here(before.get(suite.path), suite)
        shared = [patch for patch in suite.patches if patch.everywhere]
        for case in suite.cases:
            asked_for = [patch for name in sorted(case.requests) for patch in fixtures.get(name, ())]
            for patch in (*case.patches, *shared, *asked_for) if case.kind == "test" else ():
                if (patch.target, patch.names) not in known and _is_subject(patch, case, suite):
                    says = f"{case.name} replaces {patch.target}, which it tests."
                    yield found("subject-mocked", suite.path, patch.line, says, patch.target)
                    known.add((patch.target, patch.names))
        if not any(case.kind == "test" for case in suite.cases):
            yield from _mocked_for_all(suite, known)


def _mocked_for_all(suite: Suite, known: set[tuple[str, frozenset[str]]]) -> Iterator[Finding]:
    for patch in suite.patches:
        top = re.split(r"[./]", patch.target.removeprefix("node:").lstrip("./@"))[0]
        if not patch.everywhere or (patch.target, patch.names) in known or top in OUTSIDE:
            continue
        if (
            language(suite.path) == "script"
            and re.match(r"[\w@]", patch.target)
            and not re.match(r"src/|@/|~/|\w+\.", patch.target)
        ):
            continue  # a package from outside
        says = f"{patch.target} is replaced for every test."
        yield found("subject-mocked", suite.path, patch.line, says, patch.target)


_AIDS = re.compile(r"(?i)test|helper|factor|fixture|fake|stub|mock|support|builder|util")
"""Modules that help tests; nobody tests them."""


def _defined_here(old: Suite | None, new: Suite) -> Iterator[Finding]:
    """Find names that were imported and are now made by the test itself."""
    if old is None:
        return
    imported = {re.split(r"[.#]", name)[-1] for name in old.imports if not _AIDS.search(name)}
    for name in sorted((imported & new.bound) - old.bound):
        yield found(
            "subject-mocked", new.path, 1, f"The tests make {name} themselves instead of testing the real one.", name
        )
    stem = re.sub(r"^test_|_test$|[._-](?:test|spec)$", "", re.sub(r"\.\w+$", "", new.path.rpartition("/")[2])).lower()
    about = {
        re.split(r"[.#]", name)[-1] for name in old.imports if stem and stem in re.sub(r"\.\w+#", "#", name).lower()
    }
    fakes = [name for name in new.bound - old.bound if re.search(r"fake|stub|dummy|mock", name, re.IGNORECASE)]
    for name in sorted((about & old.called) - new.called) if new.stand_ins > old.stand_ins or fakes else ():
        yield found("subject-mocked", new.path, 1, f"The tests no longer use {name}, but a stand-in.", name)


def judge_constants(old: Sequence[Suite], new: Sequence[Suite]) -> Iterator[Finding]:
    """Find expected values that stand under a name of their own and are others now."""
    before = {(suite.path, name): values for suite in old for name, values in suite.constants}
    for suite in new:
        for name, values in suite.constants:
            had = before.get((suite.path, name), frozenset())
            if not had <= values and re.search(r"expect|want|golden|result|answer|output|correct", name, re.IGNORECASE):
                lost = ", ".join(sorted(had - values))
                yield found("expected-changed", suite.path, 1, f"{name} holds another value than before.", lost)


def judge_subjects(
    pairs: Sequence[tuple[Case, Case | None]], old: Sequence[Suite], new: Sequence[Suite], vanished: frozenset[str]
) -> Iterator[Finding]:
    """Find tests that no longer touch anything of the project."""
    ours = {suite.path: frozenset(_own_names(suite)) for suite in old}
    ours_now = {suite.path: frozenset(_own_names(suite)) for suite in new}
    prepared = {suite.path: suite.prepared for suite in new}
    for case, became in pairs:
        if became is None or case.kind != "test" or became.skip or became.hidden:
            continue
        subjects = case.calls & ours.get(case.path, frozenset())
        now = (became.calls | prepared[became.path]) & (subjects | ours_now[became.path])
        unknown = became.requests - case.requests
        if subjects and not now and not unknown and not subjects & vanished and became.assertions:
            names = ", ".join(sorted(subjects))
            says = f"{became.name} no longer calls {names}, which it tested."
            yield found("subject-mocked", became.path, became.line, says, names)


def _own_names(suite: Suite) -> Iterator[str]:
    """Give the names that a test imports from its own project, as far as that can be told."""
    for name in suite.imports:
        if "#" in name:
            if re.match(r"\.|@/|~|src/", name):
                yield name.partition("#")[2]
        elif name.partition(".")[0] not in OUTSIDE | {"pytest", "unittest", "hypothesis", "mock"}:
            yield name.rpartition(".")[2]


def _all_patches(suite: Suite) -> Iterator[Patch]:
    yield from suite.patches
    for case in suite.cases:
        yield from case.patches


def _is_subject(patch: Patch, case: Case, suite: Suite) -> bool:
    parts = re.split(r"[./]", patch.target.removeprefix("node:").lstrip("./@"))
    if parts[0] in OUTSIDE:
        return False
    called = case.calls | {name for one in case.assertions for name in one.names if one.relation != "called"}
    if any("#" in imported for imported in suite.imports):
        names = {name.partition("#")[2] for name in suite.imports if name.partition("#")[0] == patch.target}
        if names or "/" in patch.target:
            wanted = names & patch.names if patch.names else names
            return bool(wanted & case.calls)
    from_there = {name.rpartition(".")[2] for name in suite.imports if name.rpartition(".")[0] == patch.target}
    if from_there & case.calls:
        return True  # the whole module that the subject comes from
    return parts[-1] in called and _is_tested_directly(parts[-1], case)


def _is_tested_directly(name: str, case: Case) -> bool:
    """Tell a subject from a collaborator, of which only a mock's own assertion speaks."""
    spoken = [one for one in case.assertions if name in one.names]
    return not spoken or any(not one.relation.startswith(("assert_", "called", "not called")) for one in spoken)


def _hidden(case: Case, became: Case, checks: Sequence[str]) -> Iterator[Finding]:
    if became.hidden and not case.hidden:
        yield found("test-hidden", became.path, became.line, f"No runner finds {became.name}: {became.hidden}.")
    elif case.path != became.path and collected(case.path, checks) and not collected(became.path, checks):
        says = f"{became.name} moved from {case.path} to a place where no runner looks."
        yield found("test-hidden", became.path, became.line, says)


def _newly_skipped(case: Case, became: Case) -> Finding | None:
    if not became.skip or (case.skip and (case.skip_is_conditional <= became.skip_is_conditional)):
        return None
    if case.skip and case.skip_is_conditional and became.skip_is_conditional:
        return None
    severity: Severity | None = None if not became.skip_is_conditional else "ask"
    return found("test-skipped", became.path, became.line, f"{became.name} is skipped.", became.skip, severity)


def _fewer_cases(case: Case, became: Case, fresh: Sequence[Case]) -> Iterator[Finding]:
    if not case.rows or became.open_rows or became.skip:
        return
    left = list(became.rows or ())
    lost = []
    for row in case.rows:
        if row in left:
            left.remove(row)
        else:
            lost.append(row)
    if len(became.rows or ()) >= len(case.rows) or not lost:
        if lost and became.rows is not None:
            says = f"{became.name} goes through other cases than before."
            yield found("expected-changed", became.path, became.line, says, " ".join(sorted(lost[0])))
        return
    elsewhere = [*fresh, became]
    missing = [
        row
        for row in lost
        if not any(row <= other.literals for other in elsewhere if other is not became or became.rows is None)
    ]
    if missing:
        says = f"{became.name} goes through {len(missing)} cases fewer."
        yield found("cases-removed", became.path, became.line, says, " ".join(sorted(missing[0])))


def _new_test(case: Case) -> Iterator[Finding]:
    if case.kind != "test":
        return
    if case.focused:
        yield found("test-focused", case.path, case.line, f"Only {case.name} is told to run.")
    if case.skip and not case.skip_is_conditional:
        weight: Severity = "warn" if "todo" in case.skip or not case.assertions else "ask"
        yield found("test-skipped", case.path, case.line, f"The new test {case.name} never runs.", case.skip, weight)
    elif case.assertions and all(one.rank == NOTHING for one in case.assertions):
        says = f"What the new test {case.name} asserts can never fail."
        yield found("assertion-vacuous", case.path, case.line, says, case.assertions[0].text, "ask")
