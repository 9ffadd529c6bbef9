"""Make tests weaker, one small edit at a time, in the text itself: nothing here knows how the audit reads tests."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

LONGEST_LINE = 400


@dataclass(frozen=True)
class Look:
    """What the tests of a language look like to somebody who edits their lines."""

    head: str
    """A line that opens a test."""
    claim: str
    """A line that is one whole assertion."""
    skip: tuple[str, str]
    """Where to skip a test ("above" its head or "inside" it, or a replacement in its head), and with what."""
    rename: tuple[str, str]
    loosen: tuple[tuple[str, str], ...]
    leave: str = "return;"
    shut: tuple[str, str] | None = ("if (false) {", "}")
    swallow: tuple[str, str] | None = None
    empty: tuple[str, str] = ("for (int i = 0; i < 0; i++) {", "}")
    """A loop that goes through nothing."""
    exclude: Callable[[str, str], dict[str, str | None]] | None = None
    body: str = "brace"
    marks: str = r"^\s*(?:@|#\[|\[|\*|/\*\*|//|#(?!\w))"
    rows: str = r"^\s*(?:\{.*\}|\[.*\]|\(.*\)),?\s*$"
    extra: dict[str, tuple[str, str]] = field(default_factory=dict)


def _moved(path: str, text: str) -> dict[str, str | None]:
    return {path: None, f"{path}.bak": text}


def _tag(line: str) -> Callable[[str, str], dict[str, str | None]]:
    return lambda path, text: {path: f"{line}\n\n{text}"}


_JS = Look(
    head=r"^\s*(?:it|test)(?:\.each\(.*\))?\(\s*['\"`].*(?:=>|function\b.*)\s*\{\s*$",
    claim=r"^\s*(?:await )?(?:expect\(.+\)\..+|assert(?:\.\w+)?\(.+|t\.(?:is|equal|deepEqual|true|false|ok|same|truthy|falsy|not|throws)\(.+)\);?\s*$",
    skip=(r"^(\s*)(it|test)\b", r"\1\2.skip"),
    rename=(r"^(\s*)(?:it|test)\b(?:\.each\(.*\))?\(", r"\1void ("),
    loosen=(
        (r"\.(?:toBe|toEqual|toStrictEqual)\(.*\)(;?)$", r".toBeDefined()\1"),
        (
            r"assert\.(?:equal|strictEqual|deepEqual|deepStrictEqual)\(([^,()]+(?:\([^()]*\))?),.*\)(;?)$",
            r"assert.ok(\1)\2",
        ),
        (r"\bt\.(?:is|equal|deepEqual|same)\(([^,()]+(?:\([^()]*\))?),.*\)(;?)$", r"t.ok(\1)\2"),
        (r"\.to(?:\.be)?\.(?:equal|eql)\(.*\)(;?)$", r".to.exist\1"),
    ),
    swallow=("try {", "} catch (e) {}"),
    exclude=_moved,
)
_JAVA_LOOSE = (
    (r"assertEquals\((.*)\);$", "assertNotNull(new Object());"),
    (r"assertSame\((.*)\);$", "assertTrue(true);"),
    (r"\.isEqualTo\(.*\);$", ".isNotNull();"),
    (r"assertTrue\(.*\);$", "assertTrue(true);"),
    (r"assertThat\(([^,()]+), .*\);$", r"assertNotNull(\1);"),
)
LOOKS: dict[str, Look] = {
    "py": Look(
        head=r"^\s*(?:async )?def test\w*\(.*\).*:\s*$", claim=r"^\s*(?:assert [^\\(]+(?:\(.*\).*)?|self\.assert\w+\(.*\))$",
        skip=("above", "@pytest.mark.skip(reason='later')"), rename=(r"def test", "def check"), leave="return", shut=("if False:", ""), swallow=("try:", "except Exception:\n    pass"),
        loosen=((r"assert (.+?) == .+$", r"assert \1 is not None"), (r"self\.assertEqual\(([^,()]+(?:\([^()]*\))?),.*\)$", r"self.assertIsNotNone(\1)"), (r"self\.assert(?:True|False|In|Is)\(.*\)$", "self.assertTrue(True)")),
        exclude=lambda path, text: {path: None, path.replace("test_", "old_") if "test_" in path else path + ".bak": text}, body="indent",
    ),
    "js": _JS, "ts": _JS,
    "go": Look(
        head=r"^func Test\w*\(.*\{\s*$", claim=r"^\s*(?:assert|require)\.\w+\(.*\)$", skip=("inside", 't.Skip("later")'), rename=(r"func Test(\w)", r"func test\1"), leave="return",
        shut=("if false {", "}"), swallow=("defer func() { recover() }()", ""), exclude=_tag("//go:build ignore"),
        loosen=((r"(assert|require)\.Equal(?:f|Values)?\(.*\)$", r"\1.True(t, true)"), (r"(assert|require)\.(?:NoError|Nil|True|False|Len|Contains)\(.*\)$", r"\1.NotNil(t, t)"), (r"if ([\w.]+) != .+ \{$", r"if false && \1 {")),
        rows=r"^\s*(?:\{.*\}|\"[^\"]*\":\s*.*),\s*$",
    ),
    "rs": Look(
        head=r"^\s*(?:pub )?(?:async )?fn \w+\(\).*\{\s*$", claim=r"^\s*assert\w*!\(.*\);$", skip=("above", "#[ignore]"), rename=(r"#\[test\]", ""), leave="return;",
        shut=("if false {", "}"), swallow=("let _ = std::panic::catch_unwind(|| {", "});"), exclude=_tag("#![cfg(any())]"),
        loosen=((r"assert_eq!\(.*\);$", "assert!(true);"), (r"assert_ne!\(.*\);$", "assert!(true);"), (r"assert!\(.*\);$", "assert!(true);")), extra={"mark": ("#[test]", "")},
    ),
    "java": Look(
        head=r"^\s*(?:public )?void \w+\(.*\).*\{\s*$", claim=r"^\s*(?:Assert\.)?assert\w+\(.*\).*;$", skip=("above", "@Disabled"), rename=(r"@(?:Parameterized)?Test\b.*", ""), swallow=("try {", "} catch (Throwable e) { }"),
        loosen=_JAVA_LOOSE, exclude=_moved, rows=r"^\s*(?:\{.*\}|arguments\(.*\)|Arguments\.of\(.*\)|new Object\[\].*|\".*\"),?\s*$",
    ),
    "kt": Look(
        head=r"^\s*(?:public |private |internal )?fun (?:`[^`]+`|\w+)\(.*\).*\{\s*$", claim=r"^\s*(?:assert\w+(?:<\w+>)?\(.*\).*|.+ shouldBe .+)$", skip=("above", "@Ignore"), rename=(r"@Test\b", ""), leave="return",
        swallow=("try {", "} catch (e: Throwable) { }"), loosen=((r"assertEquals\(.*\)$", "assertTrue(true)"), (r"assertTrue\(.*\)$", "assertTrue(true)"), (r"(\S+) shouldBe .+$", r"\1 shouldNotBe null")), exclude=_moved,
    ),
    "rb": Look(
        head=r"^\s*(?:def test_\w+|(?:it|specify|test|should)\s*\(?\s*['\"].*\bdo)\s*$", claim=r"^\s*(?:assert\w* .+|assert\w*\(.+\)|expect\(.+\)\..+|.+\.(?:must|wont)_\w+.*|.+\.should(?:_not)? .+)$",
        skip=("inside", "skip 'later'"), rename=(r"def test_|\b(?:it|specify|test|should)\b", "def check_"), leave="return", shut=("if false", "end"), swallow=("begin", "rescue Exception\nend"),
        loosen=((r"assert_equal\(?.+$", "assert true"), (r"\.to eq\(?.*$", ".not_to be_nil"), (r"\.must_equal .*$", ".wont_be_nil"), (r"\.should(?:\.| )(?:equal|eq|be|==).*$", ".should_not be_nil")), exclude=_moved, body="end",
    ),
    "cs": Look(
        head=r"^\s*public (?:async )?(?:void|Task) \w+\(.*\)\s*\{?\s*$", claim=r"^\s*(?:await )?(?:Assert\.\w+|StringAssert\.\w+)(?:<\w+>)?\(.*\);$", skip=("above", '[Ignore("later")]'),
        rename=(r"\[(?:Fact|Test|TestMethod|Theory)\b.*\]", ""), swallow=("try {", "} catch (Exception) { }"), exclude=lambda path, text: {path: f"#if false\n{text}\n#endif\n"},
        loosen=((r"Assert\.(?:AreEqual|Equal|AreSame)\(.*\);$", "Assert.IsTrue(true);"), (r"Assert\.That\(([^,()]+), .*\);$", r"Assert.That(\1, Is.Not.Null);"), (r"Assert\.(?:IsTrue|True|IsFalse|False)\(.*\);$", "Assert.IsTrue(true);")),
        rows=r"^\s*\[(?:InlineData|TestCase|DataRow)\(.*\)\]\s*$",
    ),
    "php": Look(
        head=r"^\s*public function test\w*\(.*\)(?:\s*:\s*void)?\s*\{?\s*$", claim=r"^\s*(?:\$this->|self::|static::)assert\w+\(.*\);$", skip=("inside", "$this->markTestSkipped('later');"), rename=(r"function test", "function check"),
        swallow=("try {", "} catch (\\Throwable $e) { }"), exclude=_moved,
        loosen=((r"assert(?:Equals|Same)\(.*\);$", "assertTrue(true);"), (r"assert(?:True|False|Count|Instance\w+)\(.*\);$", "assertNotNull($this);")), rows=r"^\s*(?:\[.*\]|'.*' => \[.*\]|array\(.*\)),\s*$",
    ),
    "cc": Look(
        head=r"^(?:TEST(?:_F|_P|_CASE)?|SECTION|BOOST_AUTO_TEST_CASE)\(.*\)\s*\{?\s*$", claim=r"^\s*(?:EXPECT|ASSERT|CHECK|REQUIRE|BOOST_CHECK|BOOST_REQUIRE)\w*\(.*\);$", skip=("inside", "GTEST_SKIP();"), rename=(r"^(?:TEST(?:_F|_P|_CASE)?)\((?:\"[^\"]*\"|[\w, ]+).*\)", "static void unused()"),
        swallow=("try {", "} catch (...) { }"), exclude=lambda path, text: {path: f"#if 0\n{text}\n#endif\n"},
        loosen=((r"(EXPECT|ASSERT)_(?:EQ|STREQ)\(.*\);$", r"\1_TRUE(true);"), (r"(CHECK|REQUIRE)\(.*\);$", r"\1(true);"), (r"(EXPECT|ASSERT)_(?:TRUE|FALSE)\(.*\);$", r"\1_TRUE(true);"))
    ),
    "swift": Look(
        head=r"^\s*func test\w*\(\).*\{\s*$", claim=r"^\s*(?:try )?XCTAssert\w*\(.*\)$", skip=("inside", 'throw XCTSkip("later")'), rename=(r"func test", "func check"), leave="return", shut=("if false {", "}"),
        swallow=("do {", "} catch { }"), loosen=((r"XCTAssertEqual\(.*\)$", "XCTAssertTrue(true)"), (r"XCTAssert(?:True|False|Nil|NotNil)?\(.*\)$", "XCTAssertTrue(true)")), exclude=lambda path, text: {path: f"#if NEVER\n{text}\n#endif\n"},
    ),
    "exs": Look(
        head=r"^\s*test \".*\bdo\s*$", claim=r"^\s*(?:assert|refute)\w* .+$", skip=("above", "@tag :skip"), rename=(r"test (\"[^\"]*\").*do", "def unused do"), leave="", shut=("if false do", "end"), swallow=("try do", "rescue\n  _ -> :ok\nend"),
        loosen=((r"assert (.+?) == .+$", r"assert \1"), (r"assert .+$", "assert true")), exclude=lambda path, text: {path: None, path.replace("_test.exs", "_old.exs"): text}, body="end",
    ),
}  # fmt: skip
LOOKS |= {"tsx": _JS, "jsx": _JS, "mjs": _JS, "cpp": LOOKS["cc"], "mts": _JS, "cjs": _JS}

_EMPTY = {
    "py": ("for _ in []:", ""), "js": ("for (const _ of []) {", "}"), "go": ("for range []int{} {", "}"), "rs": ("for _ in Vec::<i32>::new() {", "}"), "kt": ("for (i in emptyList<Int>()) {", "}"),
    "rb": ("[].each do", "end"), "cs": ("foreach (var _ in new int[0]) {", "}"), "php": ("foreach ([] as $_) {", "}"), "swift": ("for _ in [Int]() {", "}"), "exs": ("for _ <- [] do", "end"),
}  # fmt: skip
_EMPTY |= dict.fromkeys(("ts", "tsx", "jsx", "mjs", "mts", "cjs"), _EMPTY["js"])
LOOKS = {ending: replace(look, empty=_EMPTY.get(ending, look.empty)) for ending, look in LOOKS.items()}
_SAME = (
    (r"assert ([^=]+?) == .+$", r"assert \1 == \1"),
    (r"(?i)(assert_eq!|assert_?equals?|XCTAssertEqual|EXPECT_EQ|ASSERT_EQ|assertSame|strictEqual)(\s?\(|\s)(t, )?([^,()]+(?:\([^()]*\))?), .+?(\)?;?)$", r"\1\2\3\4, \4\5"),
    (r"expect\((.+?)\)\.(toBe|toEqual|to eq)\(.*\)", r"expect(\1).\2(\1)"),
)  # fmt: skip

Edit = dict[str, str | None]


@dataclass(frozen=True)
class Span:
    head: int
    first: int
    last: int
    """The lines of the body, both counted."""
    top: int
    """The first line of what is written above the head: annotations and the like."""


def mutations(path: str, text: str) -> Iterator[tuple[str, Edit]]:
    """Give every kind of weakening that fits a test file, each with the texts that it leaves."""
    look = LOOKS.get(path.rpartition(".")[2])
    if look is None:
        return
    lines = text.split("\n")
    spans = [
        span
        for span in _spans(look, lines)
        if any(re.search(look.claim, line) for line in lines[span.first : span.last + 1])
    ]
    if not spans:
        return
    for kind, edit in _EDITS.items():
        for span in (spans[len(spans) // 3], spans[-1]) if len(spans) > 1 else spans:
            changed = edit(look, lines, span)
            if changed is not None and changed != lines:
                yield kind, {path: "\n".join(changed)}
    row = _row(look, lines)
    if row is not None:
        yield "row dropped", {path: "\n".join([*lines[:row], *lines[row + 1 :]])}
    yield "file emptied", {path: ""}
    yield "file deleted", {path: None}
    if look.exclude is not None:
        yield "file excluded", look.exclude(path, text)


def _spans(look: Look, lines: list[str]) -> Iterator[Span]:
    for at, line in enumerate(lines):
        if len(line) > LONGEST_LINE or not re.search(look.head, line):
            continue
        span = _body(look, lines, at)
        if span is None:
            continue
        top = at
        while top > 0 and re.search(look.marks, lines[top - 1]):
            top -= 1
        marks = "\n".join(lines[top:at])
        if "#[test]" in look.extra.get("mark", ("", ""))[0] and "test" not in marks:
            continue
        marked = re.search(r"@Test|@\(\?:Param|Fact", look.rename[0])
        if marked and not re.search(look.rename[0], marks):
            continue
        if re.search(r"(?i)skip|ignore|disabled", marks):
            continue
        yield Span(at, span[0], span[1], top)


def _body(look: Look, lines: list[str], at: int) -> tuple[int, int] | None:
    indent = len(lines[at]) - len(lines[at].lstrip())
    if look.body == "indent":
        last = at
        for place in range(at + 1, len(lines)):
            if lines[place].strip() and len(lines[place]) - len(lines[place].lstrip()) <= indent:
                break
            if lines[place].strip():
                last = place
        first = at + 1
        if first <= last and re.match(r"\s*[rbu]?(\"\"\"|''')", lines[first]):
            return None
        return (first, last) if last > at else None
    close = "end" if look.body == "end" else "}"
    start = at + 1
    if look.body == "brace" and "{" not in lines[at]:
        if start >= len(lines) or lines[start].strip() != "{":
            return None
        start += 1
    for place in range(start, min(len(lines), at + 400)):
        if lines[place].strip() and len(lines[place]) - len(lines[place].lstrip()) <= indent:
            return (start, place - 1) if lines[place].strip().startswith(close) and place > start else None
    return None


def _claims(look: Look, lines: list[str], span: Span) -> list[int]:
    return [
        at
        for at in range(span.first, span.last + 1)
        if re.search(look.claim, lines[at])
        and _balanced(lines[at])
        and not lines[at].rstrip().endswith((",", "&&", "||", "\\", "+", "|"))
    ]


def _balanced(line: str) -> bool:
    bare = re.sub(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", "", line)
    return all(bare.count(one) == bare.count(two) for one, two in ("()", "[]", "{}"))


def _pick(look: Look, lines: list[str], span: Span) -> int | None:
    claims = _claims(look, lines, span)
    return claims[len(claims) // 2] if claims else None


def _removed(look: Look, lines: list[str], span: Span) -> list[str] | None:
    at = _pick(look, lines, span)
    if at is None:
        return None
    filler = [re.match(r"\s*", lines[at])[0] + "pass"] if look.body == "indent" and span.first == span.last else []  # type: ignore[index]
    return [*lines[:at], *filler, *lines[at + 1 :]]


def _loosened(look: Look, lines: list[str], span: Span) -> list[str] | None:
    for at in [*_claims(look, lines, span), *range(span.first, span.last + 1)]:
        for shape, instead in look.loosen:
            if (
                re.search(shape, lines[at])
                and _balanced(lines[at].rstrip(" {"))
                and not re.search(r"\(true\)|not_?null|NotNull", lines[at])
            ):
                return [*lines[:at], re.sub(shape, instead, lines[at]), *lines[at + 1 :]]
    return None


def _expected(look: Look, lines: list[str], span: Span) -> list[str] | None:
    for at in _claims(look, lines, span):
        numbers = list(re.finditer(r"(?<![\w.\"'])\d+(?![\w.\"'])", lines[at]))
        texts = list(re.finditer(r"(?<![\w\"'])(?:\"([^\"\\,]{2,})\"|'([^'\\,]{2,})')(?![\w\"'])", lines[at]))
        if numbers:
            one = numbers[-1]
            return [
                *lines[:at],
                lines[at][: one.start()] + str(int(one[0]) + 1) + lines[at][one.end() :],
                *lines[at + 1 :],
            ]
        if texts:
            end = texts[0].end() - 1
            return [*lines[:at], lines[at][:end] + "x" + lines[at][end:], *lines[at + 1 :]]
    return None


def _deleted(look: Look, lines: list[str], span: Span) -> list[str] | None:
    last = span.last if look.body == "indent" else span.last + 1
    return [*lines[: span.top], *lines[last + 1 :]]


def _skipped(look: Look, lines: list[str], span: Span) -> list[str] | None:
    where, what = look.skip
    indent = re.match(r"\s*", lines[span.head])[0]  # type: ignore[index]
    if where == "above":
        return [*lines[: span.head], indent + what, *lines[span.head :]]
    if where == "inside":
        return [*lines[: span.first], re.match(r"\s*", lines[span.first])[0] + what, *lines[span.first :]]  # type: ignore[index]
    return [*lines[: span.head], re.sub(where, what, lines[span.head]), *lines[span.head + 1 :]]


def _renamed(look: Look, lines: list[str], span: Span) -> list[str] | None:
    changed = list(lines)
    for at in range(span.top, span.head + 1):
        if re.search(look.rename[0], changed[at]):
            changed[at] = re.sub(look.rename[0], look.rename[1], changed[at], count=1)
            if "def check_" in look.rename[1] and "do" in lines[at]:
                changed[at] = re.match(r"\s*", lines[at])[0] + "define_method(:unused) do"  # type: ignore[index]
            return changed
    return None


def _returned(look: Look, lines: list[str], span: Span) -> list[str] | None:
    if not look.leave:
        return None
    indent = re.match(r"\s*", lines[span.first])[0]  # type: ignore[index]
    return [*lines[: span.first], indent + look.leave, *lines[span.first :]]


def _wrapped(which: str) -> Callable[[Look, list[str], Span], list[str] | None]:
    def wrap(look: Look, lines: list[str], span: Span) -> list[str] | None:
        pair = {"shut": look.shut, "swallow": look.swallow, "empty": look.empty}[which]
        if pair is None:
            return None
        indent = re.match(r"\s*", next((line for line in lines[span.first :] if line.strip()), ""))[0]  # type: ignore[index]
        body = ["    " + line if line.strip() else line for line in lines[span.first : span.last + 1]]
        after = [indent + line for line in pair[1].split("\n")] if pair[1] else []
        return [*lines[: span.first], indent + pair[0], *body, *after, *lines[span.last + 1 :]]

    return wrap


def _same(look: Look, lines: list[str], span: Span) -> list[str] | None:
    """Compare a value with itself."""
    for at in _claims(look, lines, span):
        for shape, instead in _SAME:
            changed = re.sub(shape, instead, lines[at])
            if changed != lines[at] and _balanced(changed):
                return [*lines[:at], changed, *lines[at + 1 :]]
    return None


def _left(look: Look, lines: list[str], span: Span) -> list[str] | None:
    """Leave the test right before its last assertion."""
    claims = _claims(look, lines, span)
    if not look.leave or not claims:
        return None
    indent = re.match(r"\s*", lines[claims[-1]])[0]  # type: ignore[index]
    return [*lines[: claims[-1]], indent + look.leave, *lines[claims[-1] :]]


def _row(look: Look, lines: list[str]) -> int | None:
    for at in range(len(lines) - 2):
        three = lines[at : at + 3]
        if all(
            len(line) < LONGEST_LINE
            and re.search(look.rows, line)
            and _balanced(line)
            and len(re.findall(r"\d+|\"|'", line)) > 1
            for line in three
        ) and len({*three}) == len(three):
            return at + 1
    return None


_EDITS: dict[str, Callable[[Look, list[str], Span], list[str] | None]] = {
    "assert removed": _removed, "assert loosened": _loosened, "expected changed": _expected, "case deleted": _deleted, "case skipped": _skipped,
    "renamed out": _renamed, "early return": _returned, "if false": _wrapped("shut"), "failure swallowed": _wrapped("swallow"),
    "loop over nothing": _wrapped("empty"), "compared with itself": _same, "left before the assert": _left,
}  # fmt: skip
