"""Read tests by their lines: for languages without a reader here, and for texts that do not parse."""

import re
from collections.abc import Iterator

from unstuck.verify.tamper.suite import DOUBTFUL, EXACT, NOTHING, PARTIAL, WEAK, Assertion, Case, Suite

_HEADS = (
    re.compile(r"^\s*(?:async\s+)?def\s+(?P<name>test\w*)\s*\("),
    re.compile(r"^\s*func\s+(?:\([^)]*\)\s*)?(?P<name>Test\w*)\s*\("),
    re.compile(r"^\s*(?:pub\s+)?(?:async\s+)?fn\s+(?P<name>\w+)\s*\("),
    re.compile(
        r"^\s*(?:public|private|protected|internal|static|final|async|override|suspend|\s)*(?:void|Task|fun|function|func)\s+(?P<name>`[^`]+`|\w+)\s*\("
    ),
    re.compile(
        r"""^\s*(?:x?it|x?test|specify|x?describe|context|fit|fdescribe|scenario)\b[\w.]*\s*\(?\s*["'`](?P<name>[^"'`]+)"""
    ),
)
_MARKED = re.compile(r"#\[(?:\w+::)?test|@(?:Parameterized)?Test\b|\[(?:Fact|Theory|Test|TestMethod)\b|@test\b")
_ASSERT = re.compile(
    r"\bassert\w*\s*[!(. ]|\bAssert\.|\bexpect\s*[({]|\brequire\.\w+\(|\bt\.(?:Error|Fatal)|\.should\b|\bverify\(|\bXCTAssert|\bmust_\w+|\bwont_"
)
_EXACT = re.compile(r"(?i)assert_?eq|equal|==|\beq\(|\.to eq|toBe\(|be\(")
_WEAK = re.compile(r"(?i)not_?(?:null|nil|none|equal)|assert_?true|truthy|!=|assert_ne|present")
_VACUOUS = re.compile(r"(?i)\bassert\w*[!.]?\w*\s*\(?\s*(?:true|1)\s*\)?\s*[;,)]?\s*$|expect\(true\)\.to")
_SKIP = re.compile(
    r"\bt\.Skip(?:f|Now)?\(|#\[ignore|@(?:Disabled|Ignore)\b|\[Ignore|Skip\s*=|markTestSkipped|markTestIncomplete|\bpending\b|@pytest\.mark\.(?:skip|xfail)"
    r"|@unittest\.skip|\bpytest\.skip\(|\b(?:it|test|describe)\.(?:skip|todo)\b|^\s*(?:xit|xtest|xdescribe|skip)\b|XCTSkip|@tag\s+:skip|\bGTEST_SKIP"
)
_LITERAL = re.compile(r"""\"(?:[^"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|(?<![\w.])-?\d[\w.]*""")
_NAME = re.compile(r"\b[A-Za-z_]\w*(?=\s*[(!])")
_COMMENT = re.compile(r"^\s*(?://|#(?!\[)|\*|--|;)")


def read_lines(path: str, text: str) -> Suite:
    """Turn a text into a suite, judging by the look of its lines."""
    cases = tuple(_cases(path, text.splitlines()))
    return Suite(path=path, cases=cases)


def _cases(path: str, lines: list[str]) -> Iterator[Case]:
    heads = [(place, match["name"]) for place, line in enumerate(lines) if (match := _head(line)) is not None]
    for place, (start, name) in enumerate(heads):
        end = heads[place + 1][0] if place + 1 < len(heads) else len(lines)
        above = [line for line in lines[max(0, start - 4) : start] if line.lstrip().startswith(("@", "#[", "["))]
        is_test = (
            bool(re.match(r"(?i)test|should", name))
            or any(_MARKED.search(line) for line in above)
            or "'" in lines[start]
            or '"' in lines[start]
        )
        body = [
            (place, line) for place, line in enumerate(lines[start + 1 : end], start + 2) if not _COMMENT.match(line)
        ]
        skip = next(
            (line.strip() for line in [*above, lines[start], *(text for _, text in body)] if _SKIP.search(line)), ""
        )
        yield Case(
            kind="test" if is_test else "aid",
            name=name,
            scope="",
            path=path,
            line=start + 1,
            assertions=tuple(_assertion(line, place) for place, line in body if _ASSERT.search(line)),
            body=" ".join(" ".join(line.split()) for _, line in body),
            literals=frozenset(found for _, line in body for found in _LITERAL.findall(line)),
            calls=frozenset(found for _, line in body for found in _NAME.findall(line)),
            skip=skip[:120],
        )


def _head(line: str) -> re.Match[str] | None:
    if len(line) > 500 or _COMMENT.match(line):  # noqa: PLR2004 - a longer line is no head of a function
        return None
    return next((found for shape in _HEADS if (found := shape.match(line)) is not None), None)


def _assertion(line: str, number: int) -> Assertion:
    bare = " ".join(line.split())[:400]
    rank = (
        NOTHING if _VACUOUS.search(bare) else WEAK if _WEAK.search(bare) else EXACT if _EXACT.search(bare) else PARTIAL
    )
    if re.search(r"\|\|\s*true|\bor true\b", bare, re.IGNORECASE):
        rank = min(rank, DOUBTFUL)
    relation = "eq" if rank == EXACT else "line"
    return Assertion(
        relation=relation, rank=rank, key=re.sub(r"\s", "", bare), skeleton=re.sub(r"[A-Za-z_]\w*|\s", "_", bare),
        literals=frozenset(_LITERAL.findall(bare)), names=frozenset(_NAME.findall(bare)), line=number, text=bare,
    )  # fmt: skip
