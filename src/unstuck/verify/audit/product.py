"""Read changed product code: what it no longer says, and what it does to its judges that no test can see."""

import re
from collections.abc import Container, Iterator, Sequence
from itertools import zip_longest

from unstuck.journal import Redactor, Remark, Severity
from unstuck.verify.audit.conserve import World
from unstuck.verify.audit.grammars import grammar_of
from unstuck.verify.change import Change, Line, added_lines, found, known, part_of, pattern, removed_lines

LONGEST_LINE = 400
LONGEST_DATA = 200_000
BULK = 3
"""So many silenced complaints in one change are no longer single decisions."""
HEAD_LINES = 30
MOST_WORDS = 2

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
_FIELD = re.compile(r"(?m)^\s*(?:[\w.]+\.)?([A-Za-z_]\w{3,})\??\s*(?::|=(?!=))")
_WORD = re.compile(r"[\s'\"`=:,;@/(){}\[\]]+")
_EXAMPLE = re.compile(r"://[^/\s]*@(?:[\w.-]*example\.|localhost|127\.0\.0\.1|db[:/]|postgres[:/]|host[:/])")
_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:\s|\\n|['\"])*[A-Za-z0-9+/=]{40}")
_UNQUOTED = frozenset({"early-exit", "equality-overridden"})
"""Signs that are none where they stand in a text in quotes."""


def read_world(changes: Sequence[Change]) -> World:
    """Say what the change does to the product, so that tests may follow it."""
    product = [change for change in changes if part_of(change.path) == "product" and not change.binary]
    old, new = (
        ("\n".join(text or "" for text in side) for side in zip(*((one.old, one.new) for one in product), strict=True))
        if product
        else ("", "")
    )
    old_names, new_names = set(_NAME.findall(old)), set(_NAME.findall(new))
    defined = {name for name in _DEFINED.findall(old) if name in old_names} - new_names
    fields = {*_FIELD.findall(old)} - new_names
    ended = {name for name in _CALLABLE.findall(old) if name in old_names} - {*_CALLABLE.findall(new)}
    stems = {_stem(one.path) for one in product if one.new is None} - {"index", "main", "mod", "lib"}
    left = {_stem(one.path) for one in product if one.new is not None}
    data = (one.new for one in changes if part_of(one.path) in {"testdata", "snapshot"} and not one.binary and one.new)
    return World(
        gone=frozenset(defined | fields | ended | (stems - left)),
        texts=(old, new),
        literals=_literals("\n".join(text for text in data if len(text) < LONGEST_DATA)),
    )


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


def judge_product(changes: Sequence[Change]) -> Iterator[Remark]:
    """Find what can stand in any file and no test would see."""
    yield from _silenced(changes)
    moved = {line.text.strip() for change in changes for line in removed_lines(change)}
    for change in changes:
        if change.old is None and pattern("shadow", "tools").search(change.path):
            says = f"{change.path} takes the place of a tool that the checks use."
            yield found("tool-shadowed", change.path, 1, says)
        if change.new and not change.binary:
            yield from _secrets(change)
            yield from _signs(change, moved)


def _signs(change: Change, moved: Container[str]) -> Iterator[Remark]:
    """Find suspicious lines; what begins in one may end in the next, and what only `moved` is no news."""
    if grammar_of(change.path) is None:
        return
    rows = [row for row in known()["sign"] if part_of(change.path) in row["parts"]]
    if re.search(r"\bos\.fork\(\)", change.new or ""):  # so ends a child, and what it does to a test, counts show
        rows = [row for row in rows if row["breaks"] != "early-exit" or "test" not in row["parts"]]
    added = [line for line in added_lines(change) if len(line.text) <= LONGEST_LINE]
    plain = [line for line in added if not line.text.lstrip().startswith(("#", "//", "*"))]
    for line, after in zip_longest(plain, plain[1:], fillvalue=Line(0, "")):
        both = f"{line.text}\n{after.text}" if after.number == line.number + 1 else line.text
        for row in rows:
            text = _QUOTED.sub("''", both) if row["breaks"] in _UNQUOTED else both
            mark = re.search(row["look"], text)
            if (
                mark is not None and line.text.strip() not in moved and mark.start() <= len(text.partition("\n")[0])
            ):  # the next line has its own turn
                yield found(row["breaks"], change.path, line.number, evidence=line.text.strip())


def _silenced(changes: Sequence[Change]) -> Iterator[Remark]:
    """Find complaints of tools that are silenced without saying which; one with a code or a reason is a decision."""
    whole, sign, never_run = (pattern("silence", name) for name in ("whole_file", "bare", "never_run"))
    bare: list[tuple[Change, Line]] = []
    for change in changes:
        if part_of(change.path) not in {"product", "test", "support"} or change.binary:
            continue
        removed = [line.text for line in removed_lines(change)]
        spare = sum(sign.search(text) is not None for text in removed)
        code = {sign.sub("", text).split("#")[0].strip() for text in removed} | {""}
        for line in (line for line in added_lines(change) if len(line.text) <= LONGEST_LINE):
            if line.number < HEAD_LINES and whole.search(line.text) and change.old is not None:
                says = "Every complaint about this file is silenced."
                yield found("suppressions-added", change.path, line.number, says, line.text.strip())
            elif sign.search(line.text) and not never_run.search(line.text):
                spare -= 1
                if spare < 0 and sign.sub("", line.text).strip() in code:  # what is new may say so from the start
                    bare.append((change, line))
    if len(bare) >= BULK:
        change, line = bare[0]
        says = f"{len(bare)} complaints of tools are silenced in this change without saying which."
        yield found("suppressions-added", change.path, line.number, says, line.text.strip())


def _secrets(change: Change) -> Iterator[Remark]:
    redactor = Redactor()
    text = change.new or ""
    if redactor.text(text) == text:
        return
    for line in added_lines(change):
        clean = redactor.text(line.text)
        if clean == line.text or _EXAMPLE.search(line.text):
            continue
        shown = part_of(change.path) in {"test", "support", "testdata", "snapshot", "docs"}
        named = not any(redactor.text(word) != word for word in _WORD.split(line.text))
        if named and (shown or _is_prose(line.text, clean)):
            continue  # nothing but its name makes it a secret: people show and try with made-up ones, and write of them
        weight: Severity | None = "ask" if shown else None
        yield found("secret", change.path, line.number, "A secret stands in the change.", clean.strip(), weight)
        return
    key = _KEY.search(text)
    if key and key.group() not in (change.old or ""):
        yield found("secret", change.path, text.count("\n", 0, key.start()) + 1, "A private key stands in the change.")


def _is_prose(text: str, clean: str) -> bool:
    """Tell whether what was taken for a secret is a sentence, or one sign again and again."""
    start = next((at for at, (was, now) in enumerate(zip(text, clean, strict=False)) if was != now), 0)
    quoted = next((one for one in _QUOTED.finditer(text) if one.start() <= start < one.end()), None)
    return quoted is not None and (len(quoted[0].split()) > MOST_WORDS or len({*quoted[0]}) * 4 < len(quoted[0]))


def _literals(text: str) -> frozenset[str]:
    return frozenset(repr(one or two) if one or two else number for one, two, number in _LITERAL.findall(text))
