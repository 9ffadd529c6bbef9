"""Read changed product code: what it no longer says, and what it does to its judges that no test can see."""

import re
from collections.abc import Container, Iterator, Sequence

from unstuck.journal import Redactor
from unstuck.verify.audit.change import Change, Finding, Line, Severity, added_lines, found, removed_lines
from unstuck.verify.audit.conserve import World
from unstuck.verify.audit.grammars import grammar_of
from unstuck.verify.audit.part import part_of

LONGEST_LINE = 400
BULK = 3
"""So many silenced complaints in one change are no longer single decisions."""

_QUOTED = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
_NAME = re.compile(r"[A-Za-z_$][\w$]{2,}")
_LITERAL = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|(?<![\w.])(\d[\d_]*(?:\.\d+)?)")
_DEFINED = re.compile(
    r"\b(?:def|class|function|interface|type|enum|func|fun|fn|struct|trait|const|let|var|val|static|record|protocol|defp?|module|mod|void|public|private|protected|internal|namespace|macro_rules!)\s+"
    r"(?:\([^)]*\)\s*)?(?:(?:static|final|async|override|abstract|virtual|const|mut|class|fun|fn|\w+(?:<[^>]*>)?)\s+){0,4}([A-Za-z_]\w*)"
)
_CALLABLE = re.compile(
    r"\b(?:def|class|function|interface|func|fun|fn|struct|trait|enum|record|protocol|defp?|macro_rules!)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w*)"
)
"""What a test could call: where no text defines it any more, its test has nothing left to test."""

_SIGNS: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("early-exit", "test support", re.compile(r"\b(?:os\._exit|sys\.exit|process\.exit|os\.Exit|System\.exit|exitProcess|Environment\.Exit|std::process::exit|System\.halt|exit|quit|_Exit)\s*\(?\s*0\s*\)?|\bpytest\.exit\(")),
    ("early-exit", "product", re.compile(r"\bos\._exit\(0\)|\b(?:syscall|unix)\.Exit\(0|\bCDLL\(.*exit\(|\b(?:_exit|_Exit|quick_exit)\(0\)|\b(?:atexit\.register|process\.on\(['\"]exit['\"]).*(?:_exit|exitCode\s*=\s*0)|process\.exitCode\s*=\s*0")),
    ("test-detected", "product", re.compile(
        r"PYTEST_CURRENT_TEST|PYTEST_VERSION|JEST_WORKER_ID|VITEST_(?:WORKER|POOL)_ID|\benv(?:iron)?\b.{0,12}\bVITEST\b|['\"](?:pytest|unittest|_pytest|nose)['\"]\s+(?:not\s+)?in\s+sys\.modules|sys\.modules.{0,30}(?:pytest|unittest)"
        r"|\btesting\.Testing\(\)|\bcfg!\(test\)|isRunningTests?|underTest|is_?under_?test|called_from_test|XCTestConfigurationFilePath|inspect\.stack\(\).*test|(?:RAILS|RACK|NODE|APP|MIX)_ENV.{0,12}=={1,2}\s*['\"]test['\"]|NODE_ENV\s*===?\s*['\"]test['\"]"
        r"|(?:open|readFile\w*|read_text|require|include|ReadFile|File\.read)\b(?!:)[^#\n]{0,60}['\"][^'\"]*(?:\btests?/|test_\w+\.py|\.(?:test|spec)\.[jt]sx?|__snapshots__)"
    )),
    ("equality-overridden", "product test support", re.compile(
        r"def __(?:eq|ne|contains|bool|instancecheck|lt|le|gt|ge)__\([^)]*\)[^:]*:\s*return (?:True|False)\b|(?:bool |boolean |fun |func |public )\s*(?:equals|Equals|operator\s*==|==)\s*\([^)]*\)[^{=]*[{=]>?\s*(?:return )?true\b|asymmetricMatch\s*[:(].*\btrue\b"
    )),
    ("test-aid-changed", "support test", re.compile(
        r"\bdef pytest_(?:runtest_\w+|collection_\w+|ignore_collect|pyfunc_call|sessionfinish|itemcollected|deselected|make_parametrize_id|report_\w+)\b|\bload_tests\b|collect_ignore(?:_glob)?\s*[=+]|AssertionError\s*=|builtins\.\w+\s*="
        r"|\boutcome\s*=\s*['\"]passed|rep(?:ort)?\.outcome\s*=|exitstatus\s*=\s*0|expect\.extend\(|globalThis\.(?:expect|it|test|describe)\s*=|global\.(?:expect|it|test|describe)\s*=|(?:def|function) (?:assert|expect)\s*\(|process\.on\(['\"]uncaughtException|jest\.retryTimes|this\.retries\("
    )),
)  # fmt: skip
"""What is suspicious in an added line: the rule, the parts in which it is, and its look."""
_TOOLS = re.compile(
    r"^(?:src/|tests?/|lib/)?(?:pytest|_pytest|unittest|coverage|mypy|ruff|hypothesis|tox|nox|flake8|pylint)(?:\.py|/__init__\.py)$|(?:^|/)(?:sitecustomize|usercustomize)\.py$|\.pth$|(?:^|/)node_modules/"
    r"|^(?:bin/|\.bin/)?(?:pytest|npm|npx|node|python3?|jest|vitest|mypy|ruff|make|tox|go|cargo|dotnet|mvn|gradle|rspec|phpunit)$"
)
_WHOLE_FILE = re.compile(
    r"^\s*(?:#\s*(?:ruff|flake8):\s*noqa\s*$|#\s*mypy:\s*ignore-errors|//\s*@ts-nocheck|/\*\s*eslint-disable\s*\*/|#\s*type:\s*ignore\s*$|#\s*pylint:\s*skip-file|/\*\s*istanbul ignore file|//\s*biome-ignore-all|/\*\s*(?:c8|v8) ignore file|#!\[allow\((?:warnings|clippy::all)\)\]|#\s*rubocop:disable all|#pragma warning disable\s*$|//\s*nolint\s*$)"
)
_BARE = re.compile(
    r"#\s*noqa\s*$|#\s*type:\s*ignore\s*$|//\s*@ts-ignore\s*$|//\s*eslint-disable(?:-next)?-line\s*$|#\s*pragma:\s*no ?cover\s*$|//\s*nolint\s*$|/[/*]\s*istanbul ignore (?:next|else|if)\s*(?:\*/)?\s*$|#\s*nosec\s*$"
)
_NEVER_RUN = re.compile(
    r"__main__|TYPE_CHECKING|NotImplementedError|abstractmethod|ImportError|__repr__|Protocol|overload|platform|raise "
)
_WORD = re.compile(r"[\s'\"`=:,;@/(){}\[\]]+")
_EXAMPLE = re.compile(r"://[^/\s]*@(?:[\w.-]*example\.|localhost|127\.0\.0\.1|db[:/]|postgres[:/]|host[:/])")


def read_world(changes: Sequence[Change]) -> World:
    """Say what the change does to the product, so that tests may follow it."""
    product = [change for change in changes if part_of(change.path) == "product" and not change.binary]
    old, new = "\n".join(change.old or "" for change in product), "\n".join(change.new or "" for change in product)
    old_names, new_names = set(_NAME.findall(old)), set(_NAME.findall(new))
    defined = {match for match in _DEFINED.findall(old) if match in old_names}
    ended = {name for name in _CALLABLE.findall(old) if name in old_names} - {*_CALLABLE.findall(new)}
    stems = {change.path.rpartition("/")[2].partition(".")[0] for change in product if change.new is None} - {
        "index",
        "main",
        "mod",
        "lib",
    }
    left = {change.path.rpartition("/")[2].partition(".")[0] for change in product if change.new is not None}
    before, after = _literals(old), _literals(new)
    read = [
        change.new or "" for change in changes if part_of(change.path) in {"testdata", "snapshot"} and not change.binary
    ]
    return World(
        gone=frozenset((defined - new_names) | ended | (stems - left)),
        literals_gone=frozenset(
            text for text in before - after if text.startswith("'/") or text.strip("'") in defined - new_names
        ),
        literals=_literals("\n".join(text for text in read if len(text) < 200_000)),  # noqa: PLR2004
    )


def judge_product(changes: Sequence[Change]) -> Iterator[Finding]:
    """Find what can stand in any file and no test would see."""
    yield from _silenced(changes)
    had = frozenset(_had(changes))
    for change in changes:
        if change.old is None and _TOOLS.search(change.path) and not change.path.endswith((".md", ".txt")):
            yield found(
                "tool-shadowed", change.path, 1, f"{change.path} takes the place of a tool that the checks use."
            )
        if change.binary or not change.new:
            continue
        yield from _secrets(change)
        if grammar_of(change.path) is None:
            continue
        for line in added_lines(change):
            if len(line.text) > LONGEST_LINE:
                continue
            yield from _signs(change.path, line, had)


def _had(changes: Sequence[Change]) -> Iterator[tuple[str, str]]:
    """Give the signs that are no news where they stand, with their path; with none, those that left their place: code moves."""
    for change in changes:
        if not change.old or change.binary or grammar_of(change.path) is None:
            continue
        for _, _, shape in _SIGNS:
            for mark in shape.findall(change.old):
                yield change.path, mark
                if mark not in (change.new or ""):
                    yield "", mark


def _signs(path: str, line: Line, had: Container[tuple[str, str]]) -> Iterator[Finding]:
    if line.text.lstrip().startswith(("#", "//", "*")):
        return
    part = part_of(path)
    bare = _QUOTED.sub("''", line.text)
    for rule, parts, shape in _SIGNS:
        mark = shape.search(bare if rule in _UNQUOTED else line.text) if part in parts.split() else None
        if mark is not None and (path, mark.group()) not in had and ("", mark.group()) not in had:
            yield found(rule, path, line.number, _MEANS[rule], line.text.strip())


_MEANS = {
    "early-exit": "The process ends with success before the tests can say anything.",
    "test-detected": "Product code behaves differently when it is tested.",
    "equality-overridden": "Objects are made equal to anything.",
    "test-aid-changed": "What runs around the tests can hide their failures.",
}
_UNQUOTED = frozenset({"early-exit", "equality-overridden"})
"""Signs that are none where they stand in a text in quotes."""


def _silenced(changes: Sequence[Change]) -> Iterator[Finding]:
    """Find complaints of tools that are silenced without saying which; one with a code or a reason is a decision."""
    bare: list[tuple[Change, Line]] = []
    for change in changes:
        if part_of(change.path) not in {"product", "test", "support"} or change.binary:
            continue
        removed = list(removed_lines(change))
        spare = sum(_BARE.search(line.text) is not None for line in removed)
        code = {_BARE.sub("", line.text).split("#")[0].strip() for line in removed}
        for line in added_lines(change):
            if len(line.text) > LONGEST_LINE:
                continue
            if line.number < 30 and _WHOLE_FILE.search(line.text) and change.old is not None:  # noqa: PLR2004
                says = "Every complaint about this file is silenced."
                yield found("suppressions-added", change.path, line.number, says, line.text.strip())
            elif _BARE.search(line.text) and not _NEVER_RUN.search(line.text):
                silenced = _BARE.sub("", line.text).strip()
                if spare:
                    spare -= 1
                elif not silenced or silenced in code:  # what is new may say so from the start
                    bare.append((change, line))
    if len(bare) >= BULK:
        change, line = bare[0]
        says = f"{len(bare)} complaints of tools are silenced in this change without saying which."
        yield found("suppressions-added", change.path, line.number, says, line.text.strip())


def _secrets(change: Change) -> Iterator[Finding]:
    redactor = Redactor()
    text = change.new or ""
    if redactor.text(text) == text:
        return
    for line in added_lines(change):
        clean = redactor.text(line.text)
        if clean == line.text or _EXAMPLE.search(line.text):
            continue
        shown = part_of(change.path) in {"test", "support", "testdata", "snapshot", "docs"}
        if shown and not any(redactor.text(word) != word for word in _WORD.split(line.text)):
            continue  # nothing but its name makes it a secret: people show and try with made-up ones
        weight: Severity | None = "ask" if shown else None
        yield found("secret", change.path, line.number, "A secret stands in the change.", clean.strip(), weight)
        return
    if "PRIVATE KEY" in text and "PRIVATE KEY" not in (change.old or ""):
        number = next(number for number, one in enumerate(text.splitlines(), 1) if "PRIVATE KEY" in one)
        yield found("secret", change.path, number, "A private key stands in the change.")


def _literals(text: str) -> frozenset[str]:
    return frozenset(repr(one or two) if one or two else number for one, two, number in _LITERAL.findall(text))
