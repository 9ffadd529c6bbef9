"""Read the fields of a task's block: `- **Files**: …`, `- **Verify**: …`, `- **Commit**: …`, `- **Agent**: …`, `- **Depends**: …`."""

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from unstuck.model.verdict import Check
from unstuck.plans.blocks import KEY, Block
from unstuck.plans.literal_text import Scanner, Stretch
from unstuck.toolchain.shell import Runnable, can_fail, first_word

_DEPENDS = r"Depends(?:[ \t_-]+on)?|Dependencies|Blocked[ \t_-]+by"
_FIELD = re.compile(
    r"\n(?P<indent>[ \t]*)(?:[-*+][ \t]+)?(?:[^\x00-\x7f\w]{1,4}[ \t]*)?"
    rf"(?:\*\*(?P<bold>(?i:Files|Verify|Commit|Agent|Requires|{_DEPENDS}))"
    r"(?:\*\*[ \t]*(?P<mark>\(proposed by [^()\n]{1,80}\)[ \t]*)?:|:\*\*)"
    rf"|(?<=[ \t])(?P<plain>(?i:Files|Verify|Commit|{_DEPENDS}))[ \t]*(?P<plain_mark>\(proposed by [^()\n]{{1,80}}\)[ \t]*)?:(?=[ \t\r\n]|\Z))[ \t]*"
    r"(?P<value>[^\n]*)"
)
"""A field's name, bold, or after a bullet or blanks, with or without a symbol before it; whether its value is a proposal that nobody has approved, and the value."""
_BULLET = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+")
_TICKS = re.compile(r"`+")
_REMARK = re.compile(r"(?<![&|;\s])[ \t]+\([^()]*\)\s*\Z")
_LISTED = re.compile(r",|;|\sand\s")
_AFTERWORD = re.compile(r"\s+(?:[-–—]\s.*|\(.*)")  # noqa: RUF001  # people do write these dashes
_NOTHING = frozenset({"", "none", "n/a", "-", "no commit", "no commit needed"})
_NAMED = re.compile(rf"(?:tasks?[ \t]+|#)?((?:VF|[A-Za-z]{{0,4}}\d+|{KEY})(?:\.\d+)*)", re.ASCII | re.IGNORECASE)
"""What names a task and nothing else."""
_RANGE = re.compile(r"(?:tasks?[ \t]+)?([A-Za-z]{0,4}(?:\d+\.)*)(\d+)(?:[-\u2013]|\.\.+|[ \t]+(?:to|through)[ \t]+)\1(\d+)", re.ASCII | re.IGNORECASE)  # fmt: skip
_SAID = re.compile(r"(?i)[(\[,;][ \t]*(?:depends[ \t]+on|blocked[ \t]+by)[: \t]+([^()\[\]]+)")
_LONGEST_RANGE = 100
_SENTENCE = re.compile(
    r"(?i)(?:make (?:sure|certain)|(?:test|find|see|look|watch) (?:that|if|whether|out)|(?:test|open|start|read|time) (?:the|all))\b"
)
"""Words with which a sentence begins, though the first of them is a program."""
_GOES_ON = ("\\", "|", "&&", "||")


class Field(NamedTuple):
    """One field: its name in lower case, the text on its line, and all of it cut into paragraphs, list items and code blocks."""

    name: str
    value: str
    segments: Sequence[tuple[str, str]]
    """Pairs of "text" or "code" and the text."""
    proposed: str = ""
    """Who proposed it, where nobody has approved it yet."""


class Span(NamedTuple):
    """A back-ticked part, with its ticks: so many at each end."""

    start: int
    end: int
    ticks: int


def read_fields(scanner: Scanner, block: Block, runnable: Runnable, into: Block | None = None) -> None:
    """Read what a task's fields ask for into its block, or into another one that stands for the same task."""
    task = into or block
    files, commands, depends = list[str](), list[str](), list[str]()
    for field in _read_fields(scanner, block):
        match field.name:
            case "files":
                files += _read_files(field)
            case "verify" if field.proposed:
                task.proposed = field.proposed
                task.reason = f"its **Verify** was {field.proposed} and nobody has approved it"
            case "verify":
                found, why = _read_verify(field, runnable)
                commands += found
                task.reason = task.reason or why
            case "commit":
                task.commit = _read_commit(field) if task.commit is None else task.commit
            case "agent":
                name = field.value.strip(" \t\r`*").partition(" ")[0]  # one word, with or without back-ticks
                task.agent = task.agent or ("" if name.casefold() in _NOTHING else name)
            case _:
                depends += (name for kind, text in field.segments if kind == "text" for name in named_tasks(text))
    task.files, task.depends = tuple(dict.fromkeys(files)), tuple(dict.fromkeys(depends))
    task.checks = tuple(Check(command=command) for command in dict.fromkeys(commands))


def _read_fields(scanner: Scanner, block: Block) -> list[Field]:
    """Find the fields that we read, in the order of the text; what is literal holds none."""
    heads = list(_FIELD.finditer(scanner.seen, block.start, block.end))
    literal = deque(block.literal)
    fields: list[Field] = []
    ends = (*(head.start() + 1 for head in heads[1:]), block.end)
    for head, end in zip(heads, ends, strict=False):
        while literal and literal[0].start < head.end():
            literal.popleft()
        below = list[Stretch]()
        while literal and literal[0].start < end:
            below.append(literal.popleft())
        name, mark = (head["bold"] or head["plain"]).lower(), head["mark"] or head["plain_mark"] or ""
        segments = list(_segments(scanner.flat, head, end, below))
        fields.append(Field(name, head["value"].strip(), segments, mark.strip(" \t()")))
    return fields


_RAW = re.compile(
    r"[ \t]*(?:[-*+][ \t]+)?(?:[^\x00-\x7f\w]{1,4}[ \t]*)?(?:\*\*(?P<bold>[A-Za-z][A-Za-z ]{0,20})(?:\*\*[ \t]*:|:\*\*)"
    r"|(?<=[ \t])(?P<plain>(?i:Files|Verify|Commit))[ \t]*:(?=[ \t]|\Z))[ \t]*(?P<value>.*)"
)
_REPEATED = {"files": "Files", "verify": "Verify"}
"""Fields of which all count; of others only the first does."""


def raw_fields(body: str) -> dict[str, str]:
    """Return a task's fields by name in lower case, those that we do not read as well, each as it stands with what belongs to it.

    Lines below a field keep their place relative to it, so that it can be written again two spaces in.
    """
    scanner = Scanner(body.replace("\r\n", "\n"))
    seen = scanner.seen[: scanner.unended] + scanner.flat[scanner.unended :]  # what never ends hides nothing here
    found: dict[str, str] = {}
    for name, text in _raw(scanner.flat.split("\n")[1:], seen.split("\n")[1:]):
        if found.get(name) and text and name in _REPEATED:
            found[name] += f"\n  - **{_REPEATED[name]}**: {text}"
        else:
            found[name] = found.get(name) or text
    return found


def _raw(lines: Sequence[str], seen: Sequence[str]) -> Iterator[tuple[str, str]]:
    name, indent, value = "", 0, list[str]()
    for line, visible in zip(lines, seen, strict=True):
        head, margin = _RAW.match(visible), _indent(line)
        if name and line.strip() and (margin <= indent and (head or margin)):
            yield name, "\n".join(value).rstrip()
            name = ""
        if head and not name:
            name, indent, value = (head["bold"] or head["plain"]).strip().lower(), margin, [head["value"].rstrip()]
        elif name:
            value.append(f"  {line[indent:]}" if margin > indent else line)
    if name:
        yield name, "\n".join(value).rstrip()


def is_field(text: str, at: int) -> bool:
    """Whether a field that we read begins with the line break at this place."""
    return _FIELD.match(text, at) is not None


def find_verify(text: str) -> Iterator[re.Match[str]]:
    """Find the heads of all Verify fields in a text; see `_FIELD` for their parts."""
    return (head for head in _FIELD.finditer(Scanner(text).seen) if (head["bold"] or head["plain"]).lower() == "verify")


def _read_files(files: Field) -> tuple[str, ...]:
    """List the paths: back-ticked, or plain ones between commas, without remarks. A plain path has no spaces."""
    found: dict[str, None] = {}
    for kind, text in files.segments:
        plain = text
        if kind == "text":
            found.update((span.removeprefix("./"), None) for span in code_spans(text))
            plain = _without(_spans(text), text)
        for part in text.split("\n") if kind == "code" else _LISTED.split(plain):
            if "`" in part:
                continue
            path = _AFTERWORD.sub("", part).strip(" \t\r\n\"'")
            if len(path.split()) == 1 and path.casefold() not in _NOTHING:
                found[path.removeprefix("./")] = None
    return tuple(found)


def _without(spans: Sequence[Span], text: str) -> str:
    """Put one back-tick in the place of each back-ticked part."""
    kept_from = [0, *(span.end for span in spans)]
    kept_to = [*(span.start for span in spans), len(text)]
    return "`".join(text[start:end] for start, end in zip(kept_from, kept_to, strict=True))


def named_in(title: str) -> tuple[str, ...]:
    """List the ids of tasks that a title says its task depends on."""
    return tuple(name for found in _SAID.finditer(title) for name in named_tasks(found[1]))


def _read_commit(commit: Field) -> str | None:
    """Return the commit's subject, "" if the plan asks for no commit, None if the field says nothing."""
    text = next((text for _, text in commit.segments), "")
    if not text:
        return None
    quoted = code_spans(text)
    said = quoted[0] if quoted else _REMARK.sub("", text).strip(" \t\r\n`")
    subject = said.partition("\n")[0].strip()
    return "" if subject.casefold().rstrip(".") in _NOTHING else subject


def named_tasks(text: str) -> tuple[str, ...]:
    """List the ids of tasks between commas, `1.1-1.3` being three; what says more than an id, as `Python 3.11`, is none."""
    items = (_AFTERWORD.sub("", item).strip(" \t\r\n`*.[]") for item in _LISTED.split(text))
    return tuple(name for item in items for name in _ids(item))


def _ids(item: str) -> Sequence[str]:
    if found := _RANGE.fullmatch(item):
        prefix, first, last = found.groups()
        numbers = range(int(first), int(last) + 1)
        return (
            [f"{prefix}{str(number).zfill(len(first))}" for number in numbers] if len(numbers) <= _LONGEST_RANGE else ()
        )
    found = _NAMED.fullmatch(item)
    return (found[1],) if found else ()


_NAME = re.compile(
    r"[A-Za-z_][\w.]*\([^()]*\)|[\w-]+(?:\.[\w-]+)*\.(?!(?:sh|bash|zsh|exe)\Z)[A-Za-z]\w*"
    r"|(?:[\w-][\w.-]*/)+[\w.-]*\.(?!(?:sh|bash|zsh|py|rb|pl|php|exe|[mc]?[jt]s)\Z)[A-Za-z]\w*"
)
"""A call in code, a file in no folder (bash looks for a lone word on PATH only), or one in a folder that is no script."""


def _read_verify(verify: Field, runnable: Runnable) -> tuple[Sequence[str], str]:
    """Find the commands that can fail: code blocks and back-ticked parts; else plain text, if it can be run. Or say why there are none.

    A back-ticked number (`200`, `0`) is an expected value, not a command, and what bash could never run is a name.
    """
    asked: list[str] = []
    for kind, text in verify.segments:
        asked.extend([text] if kind == "code" else code_spans(text))
    asked = [command for command in asked if command and not command.isdigit() and not _NAME.fullmatch(command)]
    if not asked:
        plain = verify.segments[:1] if verify.value else verify.segments
        told = [_plain_command(text) for _, text in plain]
        asked = [line for line in told if line and not _SENTENCE.match(line) and runnable(first_word(line))]
    kept = [command for command in asked if can_fail(command)]
    if kept or asked:
        return kept, "" if kept else f"`{asked[0]}` always passes"
    said = " ".join(verify.value.split()) or " ".join(" ".join(text for _, text in verify.segments).split())
    return (), f'"{said}" is not a command' if said else "its **Verify** is empty"


def _parts(flat: str, head: re.Match[str], end: int, literals: Sequence[Stretch]) -> Iterator[tuple[str, str]]:
    """Yield what belongs to a field below its line: literal stretches, and lines that are further in than it."""
    at = head.end() + 1
    indent = len(head["indent"])
    for literal in (*literals, None):
        limit = literal.start if literal else end
        while at < limit:
            after = flat.find("\n", at, limit) + 1 or limit
            line = flat[at:after].rstrip("\r\n")
            if _indent(line) <= indent and line.strip():
                return
            yield "text", line
            at = after
        if literal:
            if literal.kind != "comment":
                yield literal.kind, flat[literal.start : literal.end].replace("\r\n", "\n")
            at = literal.end


def _segments(flat: str, head: re.Match[str], end: int, literals: Sequence[Stretch]) -> Iterator[tuple[str, str]]:
    """Cut a field into its paragraphs, list items and code blocks."""
    text = [value] if (value := head["value"].strip()) else []
    for kind, part in _parts(flat, head, end, literals):
        bullet = _BULLET.match(part) if kind == "text" else None
        if text and (kind == "code" or bullet or not part.strip()):
            yield "text", "\n".join(text)
            text = []
        if kind == "code":
            yield "code", _code(part)
        elif part.strip():
            text.append(part[bullet.end() :] if bullet else _outdent(part, len(head["indent"]) + 2))
    if text:
        yield "text", "\n".join(text)


def _code(block: str) -> str:
    """Return what stands between the fences, as far out as they are."""
    first, *lines = block.rstrip("\n").split("\n")
    bullet = _BULLET.match(first)
    if lines and set(lines[-1].strip()) in ({"`"}, {"~"}):
        lines.pop()
    return "\n".join(_outdent(line, bullet.end() if bullet else _indent(first)) for line in lines).strip("\n")


def _plain_command(text: str) -> str:
    """Return the command in text without back-ticks: its first line, and the next while it says it goes on."""
    lines = text.split("\n")
    last = 0
    while last + 1 < len(lines) and lines[last].rstrip().endswith(_GOES_ON):
        last += 1
    return _REMARK.sub("", "\n".join(lines[: last + 1])).strip()


def code_spans(text: str) -> list[str]:
    """List the back-ticked parts."""
    return [inner for span in _spans(text) if (inner := text[span.start + span.ticks : span.end - span.ticks].strip())]


def _spans(text: str) -> list[Span]:
    """Find the back-ticked parts as CommonMark pairs them: a run of ticks ends at the next run of its length."""
    runs = [found.span() for found in _TICKS.finditer(text)]
    later: dict[int, deque[int]] = defaultdict(deque)
    for place, (start, end) in enumerate(runs):
        later[end - start].append(place)
    found: list[Span] = []
    after = -1
    for place, (start, end) in enumerate(runs):
        later[end - start].popleft()
        if place > after and later[end - start]:
            after = later[end - start][0]
            found.append(Span(start, runs[after][1], end - start))
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _outdent(line: str, indent: int) -> str:
    """Take away at most the indentation of what the line stands in."""
    return line[min(indent, _indent(line)) :]
