"""Give the same failure the same signature in every run.

Two runs of one failure have one signature, however their paths, line numbers, times, hashes, ports and counts
differ; another error class, message, failing test or missing name gives another signature.
"""

import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from unstuck.model.text import shown

LONGEST_LINE = 2_000
"""About as long as cleaned lines can be."""
LONGEST_NORMAL = 300
EACH_END = 200
"""Of very many error lines, so many of the first and of the last are looked at."""
LAST_LINES = 8
"""Text in which nothing looks like an error is known by its end."""
HASH_CHARS = 10
SLUG_CHARS = 40
MOST_SEEN = 10_000
MOST_ROUNDS = 6
"""Removing one thing may uncover another; real text needs two rounds."""


def signature(text: str | Iterable[str], kind: str = "", tests: Sequence[str] = ()) -> str:
    """Return a readable word and a hash of the normal form, or an empty string without text and kind."""
    form = normal_form(text, tests)
    if not form and not kind:
        return ""
    digest = hashlib.sha256(f"{kind}\n{form}".encode(errors="replace")).hexdigest()
    return f"{kind or _slug(form)}-{digest[:HASH_CHARS]}"


def normal_form(text: str | Iterable[str], tests: Sequence[str] = ()) -> str:
    """Return what names the failure, one fact per line, without what changes from run to run."""
    whole = text if isinstance(text, str) else "\n".join(text)
    form = "\n".join(_facts(shown(whole), tests))
    for _ in range(MOST_ROUNDS):  # a normal form is its own normal form
        before, form = form, "\n".join(_facts(form, ()))
        if form == before:
            break
    return form


# --- which lines name the failure ------------------------------------------------------------------

_HINTS = (
    "rror", "rrno", "ERR", "ail", "AIL", "xception", "anic", "atal", "bort", "enied", "efused", "annot", "an't", "an\u2019t",
    "ould not", "ouldn", "nable", "ot found", "o such", "ndefined", "nresolved", "nexpected", "nknown", "nrecogni",
    "nauthorized", "nbound", "nsupported", "issing", "nvalid", "llegal", "xceed", "imed out", "imeout", "illed", "onflict",
    "CONFLICT", "ssert", "xpected", "egmentation", "xhausted", "verloaded", "orbidden", "uplicate", "o space", "o module",
    "ad ", "roken", "ejected", "rash", "ot ok", "DENIED", "REFUSED", "UNKNOWN", "INVALID", "ABORT", "PANIC", "FATAL",
    "✕", "✗", "✖", "\xd7", "●",
)  # fmt: skip
"""One of these is in every line that may name a failure. Plain strings are found far faster than patterns."""

_ALARM = (
    r"Error|Exception|FAIL|(?<![A-Za-z])(?i:err(?:ors?|no)?(?![a-z])|fatal|panic|fail|abort|denied|refused|can(?:not|['\u2019]t)\b"
    r"|could(?: not|n['\u2019]t)|unable|not found|no such|un(?:defined|resolved|expected|known|recogni[sz]ed|authorized|bound"
    r"|supported)|missing|invalid|illegal|exceed|tim(?:ed out|eout)|killed|conflict|assert|expected|segmentation|exhausted"
    r"|overloaded|forbidden|duplicate|no space|no module|bad |broken|rejected|crash|not ok)|^[✕✗✖\xd7●]"
)
_CALM = (
    r"(?<![\w.])(?:0|no|No|zero) (?:\w+ )?(?:errors?|failures?|failed|problems?|issues?)\b"
    r"|\b(?:PASS(?:ED)?|ok|passed)$|\b(?:[Ww]arning|WARN(?:ING)?|DeprecationWarning|[Nn]otice|INFO|DEBUG)\b"
    r"|^\W*(?:Found )?(?:\d+|#) (?:\w+ ){0,2}(?:errors?|fail\w*|passed|problems?|tests?|warnings?|error\(s\)|skipped)\b"
    r"|^\W*(?:Tests?|Test Suites?|Test Files|Snapshots|Suites|Time|Ran|collected|Finished|FAILED \(|FAILED$|FAIL$)\b"
    r"|short test summary|^\W*(?:make|gmake|ninja)(?:\[\d+\])?: (?:\*\*\*|build stopped)|^npm (?:ERR!|error) (?:A com"
    r"|code|errno|path)|^\W*(?:Errors|Failures|ERRORS|FAILURES)\W*$|For (?:more|further) information|^File ['\"]"
    r"|^(?:hint|help|note):|aborting due to|^> |^(?:raise|return|throw|if|except|def)\b"
)
"""Lines that count, warn, comfort, repeat or quote code: they do not name the failure."""

_RULE = r"(?<![\w-])[A-Z]{1,4}\d{3,5}(?!\w)"
"""The code of a linter's rule."""

_FAILING = (
    r"failing test: (.+)",  # our own normal form
    r"(?:FAILED|ERROR) (\S+::.+?)(?: - .*)?",  # pytest's summary
    r"(?:FAILED|ERROR) (\S+\.py)(?: - .*)?",
    r"(\S+::.+?) (?:FAILED|ERROR)(?: ?\[ ?\d+%\])?",  # pytest -v
    r"--- FAIL: (\S+)(?: \(.*)?",  # go
    r"test (\S+)(?: - .+)? \.\.\. FAILED",  # cargo
    r"(?:FAIL|ERROR): (\w+ \([\w.]+\).*)",  # unittest
    r"not ok (?:\d+ )?(?:- )?(.+?)(?: # .*)?",  # TAP
    r"[✕✗✖\xd7] (?!\d+ problem)(.+?)(?: \(?[\d.]+ ?m?s\)?)?",  # mocha, jest, vitest
    r"● (.+ \u203a .+)",  # jest
    r"FAIL (\S+\.[A-Za-z]\S*(?: > .+)?)(?: \(?[\d.]+ ?m?s\)?)?",  # jest, vitest
    r"(\S+ > .+) FAILED",  # gradle
)
_TEST_MARKS = ("FAIL", "ERROR", "not ok", "failing test:", "✕", "✗", "✖", "\xd7", "●")


@cache
def _patterns(*shapes: str) -> tuple[re.Pattern[str], ...]:
    """Compile when first used: most commands never need them, and compiling takes longer than starting Python."""
    return tuple(re.compile(shape) for shape in shapes)


def _facts(text: str, tests: Sequence[str]) -> list[str]:
    """Return the failing tests and the error lines, sorted: parallel tools print them in any order."""
    alarm, calm = _patterns(_ALARM, _CALM)
    ids = {_test_id(test) for test in tests}
    first: dict[str, None] = {}
    last: deque[str] = deque(maxlen=EACH_END)
    seen: set[str] = set()
    for start, end in _candidates(text):
        line = " ".join(text[start:end].split())
        if line in seen:
            continue
        if len(seen) < MOST_SEEN:
            seen.add(line)
        if (test := _failing_test(line)) is not None:
            if len(ids) < 2 * EACH_END:
                ids.add(_test_id(test))
        elif alarm.search(line) and not calm.search(line):
            if line.startswith(_IN_A_FILE):
                line = f"{_file_above(text, start)}{line}"
            if len(first) < EACH_END:
                first[line] = None
            else:
                last.append(line)
    named = sorted(f"failing test: {test}" for test in ids if test)
    lines = {quiet for line in (*first, *dict.fromkeys(last)) if (quiet := _quiet(line))}
    return named + sorted(lines) or _end(text)


def _candidates(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each line that contains one of the hints."""
    lines: dict[int, int] = {}
    for word in _HINTS:
        at = text.find(word)
        while at >= 0:
            start = text.rfind("\n", 0, at) + 1
            end = lines.get(start) or text.find("\n", at)
            lines[start] = end = len(text) if end < 0 else end
            at = text.find(word, end)
    return sorted(lines.items())


_IN_A_FILE = ("SyntaxError", "IndentationError", "TabError", "E SyntaxError", "E IndentationError", "E TabError")


def _file_above(text: str, at: int) -> str:
    """Return the file of a Python error that does not name it itself."""
    above = re.findall(r"File \"([^\"\n]+)\", line \d+", text[max(0, at - LONGEST_LINE) : at])
    return f"{above[-1]}: " if above else ""


def _end(text: str) -> list[str]:
    """Return the lines with rules of a linter, or the last lines."""
    tail = text[-EACH_END * LONGEST_LINE :].split("\n")[-EACH_END:]
    lines = [quiet for line in tail if (quiet := _quiet(" ".join(line.split())))]
    ruled = sorted({line for line in lines if re.search(_RULE, line)})
    return ruled or lines[-LAST_LINES:]


def _failing_test(line: str) -> str | None:
    if not any(mark in line for mark in _TEST_MARKS):
        return None
    matches = (shape.fullmatch(line) for shape in _patterns(*_FAILING))
    return next((match[1] for match in matches if match), None)


def _test_id(test: str) -> str:
    """Return the name of a test without the place of the checkout and the line number."""
    path, mark, name = " ".join(shown(test).split()).partition("::")
    path = re.sub(r"^((?:\S*/)?\S+\.\w+):\d+(?::\d+)?", r"\1", re.sub(_PATH, _shorten, path))
    return f"{path}{mark}{name}"[:LONGEST_NORMAL].strip()


# --- what changes from run to run ------------------------------------------------------------------

_GAP = "#"
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_PATH = (
    r"(?<![\w./\\~@-])(?:file://(?=/)|-[IL](?=/))?"
    r"(?:(?:~|\.{1,2}|[A-Za-z]:)?/(?!/)(?:[^\s'\":;,()\[\]<>|*?/\\]+/)*[^\s'\":;,()\[\]<>|*?/\\]*"
    r"|[A-Za-z]:\\(?:[^\s'\":;,()\[\]<>|*?/\\]+\\+)*[^\s'\":;,()\[\]<>|*?/\\]*"
    r"|(?:[^\s'\":;,()\[\]<>|*?/\\=]+/)+[^\s'\":;,()\[\]<>|*?/\\]+)"
)
_ROOTS = (
    "src", "lib", "test", "tests", "spec", "specs", "packages", "site-packages", "dist-packages", "node_modules", "crates",
    "internal", "include", "cmd",
)  # fmt: skip
"""Below the last of these a path is the same in every checkout."""
_TEMPORARY = r"(?=\w*[\dA-Z])[\w-]{6,}"
_HASH = r"(?<![\w-])[A-Za-z]{0,6}_?[A-Za-z0-9]{7,}(?![\w-])"
_LABELS = (
    "lines?|ln|columns?|cols?|char(?:acter)?|row|offset|pos(?:ition)?|byte|pid|process|port|thread|worker|job|request"
)
_NOISE = (
    (r"(?<=[A-Za-z_)\]])(?::\d+){1,3}(?=[:\s),\]'>]|$)", ""),
    (r"[\u2018-\u201f`\xb4\xab\xbb\"]+|''", "'"),
    (r"[\u2500-\u259f]+|[-=_*~^.]{4,}|^E (?= *\S)", " "),
    (r"(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", _GAP),
    (rf"(?:\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?\b(?:{_MONTHS}) +\d{{1,2}},?(?= |$)(?: \d{{4}}(?!:))?", _GAP),
    (r"\b\d{4}[-/]\d\d?[-/]\d\d?(?:[T_ ]|\b)|\b\d\d?/\d\d?/\d{2,4}\b", f"{_GAP} "),
    (r"\b\d\d?:\d\d(?::\d\d)?(?:[.,]\d+)?(?: ?[AP]M\b)?(?:Z\b| ?[+-]\d\d:?\d\d\b| (?:UTC|GMT|CES?T)\b)?(?!\w)", _GAP),
    (r"(?i)\b0x[0-9a-f]+\b", _GAP),
    (r"\[gw\d+\]", ""),
    (r"\btmp(?:\.[A-Za-z0-9]{6,12}|(?=[a-z_]*\d)[a-z0-9_]{8})(?!\w)", _GAP),
    (r"\b[\w.-]+@[\w-]+(?=:[~/])", "user@host"),
    (r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?![\w.]\w)", _GAP),
    (rf"(?i)\b({_LABELS})\b[ :=#]*\d+(?: ?(?:-|to) ?\d+)?", rf"\1 {_GAP}"),
    (r"(\.(?:[jt]sx?|[cm]ts|cs|vb|fs|c|h|cpp|cc|cxx|hpp|py|vue|\w*proj|targets))[(\[]\d+(?:, ?\d+)*[)\]]", r"\1"),
    (r"(?<=[\w.\])])(?::\d+){1,3}(?=[:\s),\]'>]|$)", ""),
    (r"(?<=:)(?::?:)?\d{2,5}\b(?=[\s),\]'/]|$)", _GAP),
    (r"(?i)(?<![\w.])\d[\d.,]*(?: ?(?:[mµun]?s|secs?|seconds?|mins?|minutes?|hours?|hrs?|h|m)\b| ?%)", _GAP),
    (r"(?i)(?<![\w.])\d[\d.,]* ?(?:[kmgt]i?b|bytes?)\b", _GAP),
)
_NUMBER = r"(?<![\w.#])(?<![A-Za-z]-)[-+]?\d[\d,_]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\.?\w)"
_COMPARES = r"(?i)\b(?:assert\w*|expect\w*|received|actual|got|want|returned|equal\w*)\b|[!=]==?"
_CODED = r"(?i)\b(?:status|code|exit(?:ed)?|errno|error|http(?:/[\d.]+)?|signal|returned)\W{0,3}(?:with )?$"
_MANY_DIGITS = 3
_KEPT_DIGITS = 3


def _quiet(line: str) -> str:
    """Return a line without what changes from run to run."""
    for _ in range(MOST_ROUNDS):
        before, line = line, _once(line)
        if line == before:
            break
    return line


def _once(line: str) -> str:
    line = re.sub(_PATH, _shorten, line.replace("\\\\", "\\"))
    for shape, (_, put) in zip(_patterns(*(noise for noise, _ in _NOISE)), _NOISE, strict=True):
        line = shape.sub(put, line)
    compares = re.search(_COMPARES, line) is not None
    line = re.sub(_NUMBER, _number(compares=compares), re.sub(_HASH, _hash, line))
    line = re.sub(rf"{_GAP}(?:[\s:.,/+_-]*{_GAP})+", _GAP, line)
    line = re.sub(rf"({_GAP} (?:error|failure|test|file|warning|problem|issue|line|item))s\b", r"\1", line)
    line = re.sub(rf"^(?:[\s:,.|>-]|[(\[]?{_GAP}[)\]]?(?!\w))+|(?:\s|[(\[]{_GAP}[)\]])+$", "", " ".join(line.split()))
    if len(line) > LONGEST_NORMAL:
        line = line[:LONGEST_NORMAL].rpartition(" ")[0] or line[:LONGEST_NORMAL]
    return line


def _shorten(match: re.Match[str]) -> str:
    """Return the part of a path that every checkout shares."""
    path = match[0].replace("\\", "/").removeprefix("file://")
    path = path[2:] if path.startswith(("-I/", "-L/")) else path
    parts = [part for part in path.split("/") if part not in ("", ".", "..", "~")]
    if not parts:
        return path
    roots = [at for at, part in enumerate(parts[:-1]) if part in _ROOTS]
    absolute = path[0] in "/~" or path[1:3] == ":/"
    if roots:
        parts = parts[roots[-1] :]
    elif absolute:
        stem, dot, ending = parts[-1].partition(".")
        passing = parts[-2:-1] in (["tmp"], ["T"], ["Temp"], ["shm"]) and re.fullmatch(_TEMPORARY, stem)
        parts = [f"{_GAP}{dot}{ending}" if passing else parts[-1]]
    return "/".join(parts)


def _hash(match: re.Match[str]) -> str:
    """Replace commit ids, digests and request ids, but not words, which have few digits."""
    word = match[0]
    digits = sum(char.isdigit() for char in word)
    lower = word.lower()
    if digits and not lower.strip("0123456789abcdef"):
        return _GAP
    long = len(word) >= 20 and digits >= _MANY_DIGITS and lower != word != word.upper()  # noqa: PLR2004  # shorter ones are names
    return _GAP if long else word


def _number(*, compares: bool) -> Callable[[re.Match[str]], str]:
    """Return a function that replaces numbers, but not codes and small values that are compared."""

    def put(match: re.Match[str]) -> str:
        value = match[0]
        small = value.lstrip("+-").isdigit() and len(value.lstrip("+-")) <= _KEPT_DIGITS
        coded = re.search(_CODED, match.string[max(0, match.start() - 24) : match.start()])
        return value if small and (compares or coded) else _GAP

    return put


def _slug(form: str) -> str:
    words = re.findall(r"[a-z0-9]+", form.partition("\n")[0].lower())
    return "-".join(words)[:SLUG_CHARS].strip("-") or "failure"
