"""Judge changed product code: complaints silenced in bulk, answers written down for the tests, tools shadowed, secrets."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from unstuck.core.redact import Redactor
from unstuck.core.tamper.change import Change, Finding, Line, Severity, added_lines, removed_lines, role
from unstuck.core.tamper.rules import found

BULK = 3
LONGEST_LINE = 300
"""So many silenced complaints in one change are no longer single decisions."""

_WHOLE_FILE = re.compile(
    r"#\s*(?:ruff|flake8):\s*noqa\s*$|#\s*mypy:\s*ignore-errors|@ts-nocheck|/\*\s*eslint-disable\s*\*/|#\s*type:\s*ignore\s*$(?<=^# type: ignore)|#\s*pylint:\s*skip-file|#\s*pyright:\s*(?:basic|ignore)|/\*\s*istanbul ignore file|biome-ignore-all|/\*\s*(?:c8|v8) ignore (?:file|start)"
)
_ONE_LINE = re.compile(
    r"#\s*noqa\b|#\s*type:\s*ignore|#\s*pylint:\s*disable|#\s*pragma:\s*no ?cover|eslint-disable|@ts-ignore|@ts-expect-error|istanbul ignore|(?:c8|v8) ignore|biome-ignore|#\s*pyright:\s*ignore|#\s*nosec|prettier-ignore|#\s*nosemgrep|//\s*nolint|#\[allow\(|@SuppressWarnings|rubocop:disable|@phpstan-ignore"
)
_TOOLS = re.compile(
    r"^(?:src/|tests?/|lib/)?(?:pytest|_pytest|unittest|coverage|mypy|ruff|hypothesis|tox|nox|flake8|pylint)(?:\.py|/__init__\.py)$|(?:^|/)(?:sitecustomize|usercustomize)\.py$|\.pth$|(?:^|/)node_modules/|^(?:bin/|\.bin/)?(?:pytest|npm|npx|node|python3?|jest|vitest|mypy|ruff|make|tox)$"
)
_DEFINITION = re.compile(
    r"^\s*(?:export\s+)?(?:default\s+)?(?:async\s+)?(?:def|class|function\*?|interface|type|enum|func|fn|struct|trait)\s+(?:\([^)]*\)\s*)?(\w+)"
    r"|^\s*(?:export\s+)?(?:const|let|var)\s+(\w+)\s*(?::[^=]+)?=\s*(?:async\s*)?(?:\(|function|\w+\s*=>|class)"
    r"|^\s+(?:static\s+|async\s+|get\s+|set\s+|public\s+|private\s+)*(\w+)\s*\([^;{}]*\)\s*(?::[^{;]+)?\{\s*$"
    r"|^\s*module\.exports\s*=\s*(?:async\s+)?(?:function\*?|class)\s+(\w+)"
    r"|^\s+(?:self\.)?(\w+)\s*:\s*[\w\[\], |.\"'<>]+(?:\s*=.*|;|,)?$|^\s*exports\.(\w+)\s*=|^([A-Z][A-Z0-9_]+)\s*=",
)
_READS = re.compile(
    r"(?:open|Path|read_text|readFile\w*|require|glob|listdir|import_module|readdir\w*)\b[^#]*['\"][^'\"]*(?:\btests?/|test_\w+\.py|\.(?:test|spec)\.[jt]sx?|__tests__|__snapshots__)[^'\"]*['\"]"
)
_EXAMPLE = re.compile(r"://[^/\s]*@(?:[\w.-]*example\.|localhost|127\.0\.0\.1|db[:/]|postgres[:/]|host[:/])")
_WORDS = frozenset(
    {"if", "for", "while", "switch", "catch", "return", "function", "constructor", "else", "with", "try"}
)


def definitions(text: str) -> dict[str, int]:
    """Give the names that a text defines, each with its line."""
    out: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _DEFINITION.match(line) if len(line) < 400 else None  # noqa: PLR2004 - a longer line defines nothing we could read
        name = next((group for group in match.groups() if group), "") if match else ""
        if name and name not in _WORDS:
            out.setdefault(name, number)
    return out


def gone_definitions(changes: Sequence[Change]) -> frozenset[str]:
    """Name what the product no longer defines; something that only got another name is not gone."""
    new_names = {name for change in changes for name in definitions(change.new or "")}
    new_lines = {
        " ".join(line.split())
        for change in changes
        for line in (change.new or "").splitlines()
        if len(line.split()) > 1
    }
    gone = _gone_modules(changes)
    for change in changes:
        lines = (change.old or "").splitlines()
        for name, number in definitions(change.old or "").items():
            if name in new_names:
                continue
            body = [" ".join(line.split()) for line in lines[number : number + 6]]
            body = [
                line for line in body if len(line.split()) > 1 and not line.startswith(('"""', "//", "#", "*", "/*"))
            ][:3]
            if not body or not all(line in new_lines for line in body):
                gone.add(name)
    return frozenset(gone)


def _gone_modules(changes: Sequence[Change]) -> set[str]:
    """Name the modules that are deleted, not moved: a default export goes by the name of its file."""
    left = {_stem(change.path) for change in changes if change.new is not None}
    texts = {change.new for change in changes if change.old is None}
    return {
        _stem(change.path) for change in changes if change.new is None and change.old not in texts
    } - left - {"index", "main", "__init__"}


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


def vanished_names(changes: Sequence[Change]) -> frozenset[str]:
    """Name what stood in the old product texts and stands in none of the new ones."""
    word = re.compile(r"[A-Za-z_$][\w$]*")
    old = {name for change in changes for name in word.findall(change.old or "")}
    return frozenset(old - {name for change in changes for name in word.findall(change.new or "")})


def judge_product(changes: Sequence[Change]) -> Iterator[Finding]:
    """Judge what can stand in any file."""
    yield from _suppressions(changes)
    for change in changes:
        if change.old is None and _TOOLS.search(change.path) and not change.path.endswith((".md", ".txt")):
            yield found(
                "tool-shadowed", change.path, 1, f"{change.path} takes the place of a tool that the checks use."
            )
        yield from _secrets(change)
        if role(change.path) == "product" and not change.binary:
            yield from _reads_tests(change)


def _reads_tests(change: Change) -> Iterator[Finding]:
    for line in added_lines(change):
        if len(line.text) < 500 and _READS.search(line.text):  # noqa: PLR2004 - generated code is longer
            yield found("test-detected", change.path, line.number, "Product code reads the tests.", line.text.strip())


def _suppressions(changes: Sequence[Change]) -> Iterator[Finding]:
    spare: Counter[str] = Counter()
    for change in changes:
        spare.update(
            _mark(line)
            for line in removed_lines(change)
            if _ONE_LINE.search(line.text) or _WHOLE_FILE.search(line.text)
        )
    blanket: list[tuple[Change, Line]] = []
    for change in changes:
        if role(change.path) not in {"product", "test", "support"}:
            continue
        before = {" ".join(line.split()) for line in (change.old or "").splitlines()}
        after = (change.new or "").splitlines()
        for line in added_lines(change):
            whole = _WHOLE_FILE.search(line.text) if line.text.lstrip().startswith(("#", "/")) else None
            mark = whole or _ONE_LINE.search(line.text)
            if mark is None or len(line.text) > LONGEST_LINE:
                continue
            if spare[_mark(line)] > 0:
                spare[_mark(line)] -= 1
            elif whole:
                yield found(
                    "suppressions-added",
                    change.path,
                    line.number,
                    "Every complaint about this file is silenced.",
                    line.text.strip(),
                )
            elif _is_blanket(line, mark.start(), before, after):
                blanket.append((change, line))
    if len(blanket) >= BULK:
        change, line = blanket[0]
        says = f"{len(blanket)} complaints of tools are silenced in this change."
        yield found("suppressions-added", change.path, line.number, says, line.text.strip())


def _is_blanket(line: Line, mark: int, before: set[str], after: list[str]) -> bool:
    """Tell whether a mark names neither rule nor reason, or was put onto code that was there before."""
    code = " ".join(line.text[:mark].rstrip("#/* {").split())
    below = " ".join(after[line.number].split()) if line.number < len(after) else ""
    old_code = code in before if code else below in before
    says = line.text[mark:]
    rule = re.search(r"noqa:\s*[A-Z]|ignore\[|disable=|disable(?:-next)?-?l?i?n?e?\s+[@\w]|expect-error\s+\w", says)
    reason = re.search(r"--\s*\w|#.*#\s*\w|\s-\s\w", says)
    return not rule or (old_code and not reason)


def _mark(line: Line) -> str:
    match = _WHOLE_FILE.search(line.text) or _ONE_LINE.search(line.text)
    return match.group().replace(" ", "") if match else ""


def _secrets(change: Change) -> Iterator[Finding]:
    if change.binary or not change.new:
        return
    redactor = Redactor()
    if redactor.text(change.new) == change.new:
        return
    for line in added_lines(change):
        clean = redactor.text(line.text)
        if clean == line.text or _EXAMPLE.search(line.text):
            continue
        in_tests = role(change.path) in {"test", "support", "testdata"}
        without_addresses = re.sub(r"\w+://\S+", "", line.text)
        if in_tests and redactor.text(without_addresses) == without_addresses:
            continue  # a made-up password in a made-up address
        weight: Severity | None = "ask" if in_tests else None
        yield found("secret", change.path, line.number, "A secret stands in the change.", clean.strip(), weight)
        return
    if "PRIVATE KEY" in change.new and "PRIVATE KEY" not in (change.old or ""):
        number = next(number for number, text in enumerate(change.new.splitlines(), 1) if "PRIVATE KEY" in text)
        yield found("secret", change.path, number, "A private key stands in the change.")
