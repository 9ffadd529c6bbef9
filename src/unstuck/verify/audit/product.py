"""Read changed product code: what it no longer says, and what it does to its judges that no test can see."""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from unstuck.model.changes import Change
from unstuck.model.verdict import Remark, Severity
from unstuck.redaction.redactor import Redactor
from unstuck.verify.audit.grammars import grammar_of
from unstuck.verify.change import Line, added_lines, found, known, part_of, pattern, removed_lines

LONGEST_LINE = 400
BULK = 3
"""So many silenced complaints in one change are no longer single decisions."""
HEAD_LINES = 30
MOST_WORDS = 2
ANYWHERE = Redactor()
"""Knows what is a secret on any machine."""


def names_gone(changes: Sequence[Change]) -> frozenset[str]:
    """Give the names that the product defined and no longer mentions: tests may follow it."""
    product = [change for change in changes if part_of(change.path) == "product" and not change.binary]
    old, new = ("\n".join(texts) for texts in ([one.old or "" for one in product], [one.new or "" for one in product]))
    unnamed = (_names("defined", old) | _names("field", old)) - _names("name", new)
    ended = _names("callable", old) - _names("callable", new)
    return frozenset(unnamed | ended)


def _names(sort: str, text: str) -> set[str]:
    return {*pattern("world", sort).findall(text)}


def judge_product(changes: Sequence[Change], redactor: Redactor) -> Iterator[Remark]:
    """Find what can stand in any file and no test would see."""
    yield from _silenced(changes)
    moved = {line.text.strip() for change in changes for line in removed_lines(change)}
    for change in changes:
        if change.old is None and pattern("shadow", "tools").search(change.path):
            says = f"{change.path} takes the place of a tool that the checks use."
            yield found("tool-shadowed", change.path, 1, says)
        if change.old is None and redactor.text(change.path) != change.path:
            yield found("secret", says="A secret stands in the name of a file.")
        if change.new and not change.binary:
            yield from _secrets(change, redactor)
            yield from _signs(change, moved)


def _signs(change: Change, moved: Container[str]) -> Iterator[Remark]:
    """Find suspicious lines; what begins in one may end in the next, and what only `moved` is no news."""
    part = part_of(change.path) if grammar_of(change.path) is not None else ""
    if part == "test" and "os.fork()" in (change.new or ""):
        part = "forking test"
    elif change.old is None and pattern("judge", "cases").search(change.path):
        part = "new test"
    rows = [
        row for row in known()["sign"] if part in row["parts"] and not re.search(row.get("aside", "$^"), change.path)
    ]
    lines = [line for line in _added(change) if not line.text.lstrip().startswith(("#", "//", "*"))]
    for before, line, after in zip((Line(0, ""), *lines), lines, (*lines[1:], Line(0, "")), strict=False):
        both = f"{line.text}\n{after.text}" if after.number == line.number + 1 else line.text
        for row in rows if line.text.strip() not in moved else ():
            text = pattern("world", "quoted").sub("''", both) if row.get("code") else both
            mark = re.search(row["look"], text)
            awaited = f"{before.text}\n{line.text}" if before.number == line.number - 1 else ""
            if re.search(row.get("within", "(?!)"), awaited):
                continue
            if mark and mark.start() <= len(text.partition("\n")[0]):
                # A child ends like that as well as a run of tests: which of them it is, a person sees.
                forks = row["breaks"] == "early-exit" and part == "product" and "os.fork()" in (change.new or "")
                severity: Severity | None = "ask" if forks else None
                yield found(row["breaks"], change.path, line.number, evidence=line.text.strip(), severity=severity)


def _added(change: Change) -> list[Line]:
    return [line for line in added_lines(change) if len(line.text) <= LONGEST_LINE]


def _silenced(changes: Sequence[Change]) -> Iterator[Remark]:
    """Find complaints of tools that are silenced without saying which; one with a code or a reason is a decision."""
    whole, sign, never_run = (pattern("silence", name) for name in ("whole_file", "bare", "never_run"))
    bare: list[tuple[Change, Line]] = []
    for change in changes:
        if part_of(change.path) not in {"product", "test", "support"} or change.binary:
            continue
        removed = (line.text for line in removed_lines(change))
        heard = {text.split("#")[0].strip() for text in removed if not sign.search(text)} | {""}
        for line in _added(change):
            if line.number < HEAD_LINES and whole.search(line.text) and change.old is not None:
                says = "Every complaint about this file is silenced."
                yield found("suppressions-added", change.path, line.number, says, line.text.strip())
            elif sign.search(line.text) and sign.sub("", line.text).strip() in heard:
                bare += (
                    [(change, line)] if not never_run.search(line.text) else []
                )  # what is new may say so from the start
    if len(bare) >= BULK:
        change, line = bare[0]
        says = f"{len(bare)} complaints of tools are silenced in this change without saying which."
        yield found("suppressions-added", change.path, line.number, says, line.text.strip())


def _secrets(change: Change, redactor: Redactor) -> Iterator[Remark]:
    """Find what looks like a secret; one of this machine is no made-up one wherever it stands."""
    text, nameless = change.new or "", replace(redactor, by_name=False)
    if redactor.text(text) == text:
        return
    shown = part_of(change.path) in {"test", "support", "testdata", "snapshot", "docs"}
    for line in added_lines(change):
        clean = redactor.text(line.text)
        own = any(secret in line.text for secret in redactor.secrets)
        # Where nothing but its name makes it a secret: people show and try with made-up ones, and write of them.
        made_up = nameless.text(line.text) == line.text and (shown or _is_prose(line.text, clean))
        if not own and (clean == line.text or made_up or pattern("world", "example").search(line.text)):
            continue
        yield found("secret", change.path, line.number, severity="ask" if shown and not own else None)
        return
    key = pattern("world", "key").search(text)
    if key and key.group() not in (change.old or ""):
        yield found("secret", change.path, text.count("\n", 0, key.start()) + 1, "A private key stands in the change.")


def _is_prose(text: str, clean: str) -> bool:
    """Tell whether what was taken for a secret is a sentence, or one sign again and again."""
    start = next((at for at, (was, now) in enumerate(zip(text, clean, strict=False)) if was != now), 0)
    quoted = next((one[0] for one in pattern("world", "quoted").finditer(text) if one.start() <= start < one.end()), "")
    return len(quoted.split()) > MOST_WORDS or len({*quoted}) * 4 < len(quoted)
