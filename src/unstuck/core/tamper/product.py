"""Judge changed product code: what it no longer defines, tests that it reads, tools that it shadows, secrets."""

import re
from collections.abc import Iterator, Sequence

from unstuck.core.redact import Redactor
from unstuck.core.tamper.change import Change, Finding, Severity, added_lines, role
from unstuck.core.tamper.rules import found
from unstuck.core.tamper.suppressions import judge_suppressions

_TOOLS = re.compile(
    r"^(?:src/|tests?/|lib/)?(?:pytest|_pytest|unittest|coverage|mypy|ruff|hypothesis|tox|nox|flake8|pylint)(?:\.py|/__init__\.py)$|(?:^|/)(?:sitecustomize|usercustomize)\.py$|\.pth$|(?:^|/)node_modules/|^(?:bin/|\.bin/)?(?:pytest|npm|npx|node|python3?|jest|vitest|mypy|ruff|make|tox)$"
)
_DEFINITION = re.compile(
    r"^\s*(?:export\s+)?(?:default\s+)?(?:async\s+)?(?:def|class|function\*?|interface|type|enum|func|fn|struct|trait)\s+(?:\([^)]*\)\s*)?(\w+)"
    r"|^\s*(?:export\s+)?(?:const|let|var)\s+(\w+)\s*(?::[^=]+)?=\s*(?:async\s*)?(?:\(|function|\w+\s*=>|class)"
    r"|^\s+(?:static\s+|async\s+|get\s+|set\s+|public\s+|private\s+)*(\w+)\s*\([^;{}]*\)\s*(?::[^{;]+)?\{\s*$"
    r"|^\s*module\.exports\s*=\s*(?:async\s+)?(?:function\*?|class)\s+(\w+)"
    r"|^\s+(?:self\.)?(\w+)\s*:\s*[\w\[\], |.\"'<>]+(?:\s*=.*|;|,)?$|^\s*exports\.(\w+)\s*=|^([A-Z][A-Z0-9_]+)\s*=|^([a-z_]\w*)\s*=\s*[a-zA-Z_][\w.]*\s*$",
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
    fresh = new_names - {name for change in changes for name in definitions(change.old or "")}
    for change in changes:
        lines = (change.old or "").splitlines()
        for name, number in definitions(change.old or "").items():
            if name in new_names:
                continue
            body = [" ".join(line.split()) for line in lines[number : number + 6]]
            body = [
                line for line in body if len(line.split()) > 1 and not line.startswith(('"""', "//", "#", "*", "/*"))
            ][:3]
            if not fresh or not body or not all(line in new_lines for line in body):
                gone.add(name)
    return frozenset(gone)


def _gone_modules(changes: Sequence[Change]) -> set[str]:
    """Name the modules that are deleted, not moved: a default export goes by the name of its file."""
    left = {_stem(change.path) for change in changes if change.new is not None}
    texts = {change.new for change in changes if change.old is None}
    return (
        {_stem(change.path) for change in changes if change.new is None and change.old not in texts}
        - left
        - {"index", "main", "__init__"}
    )


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


def vanished_names(changes: Sequence[Change]) -> frozenset[str]:
    """Name what stood in the old product texts and stands in none of the new ones."""
    word = re.compile(r"[A-Za-z_$][\w$]*")
    old = {name for change in changes for name in word.findall(change.old or "")}
    return frozenset(old - {name for change in changes for name in word.findall(change.new or "")})


def gone_texts(changes: Sequence[Change]) -> frozenset[str]:
    """Give the routes, and the names of gone definitions as texts, that stood in the old product and in none of the new."""
    route = re.compile(r"['\"`](/[\w/<>{}:.*-]+)['\"`]")
    old = {text for change in changes for text in route.findall(change.old or "")}
    new = {text for change in changes for text in route.findall(change.new or "")}
    return frozenset(repr(text) for text in {*(old - new), *gone_definitions(changes)})


def judge_product(changes: Sequence[Change]) -> Iterator[Finding]:
    """Judge what can stand in any file."""
    yield from judge_suppressions(changes)
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


def _secrets(change: Change) -> Iterator[Finding]:
    if change.binary or not change.new:
        return
    redactor = Redactor(by_name=False)  # a made-up password in code is no leak
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
