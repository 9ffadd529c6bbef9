"""Read the fields of a task's block, such as `- **Files**: …` or `- **Verify**: …`."""

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
"""The name of a field, the mark of a proposal that the user has not approved, and the value.

The name is bold, or follows a bullet or blanks. A symbol may precede it.
"""
_BULLET = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+")
_TICKS = re.compile(r"`+")
_REMARK = re.compile(r"(?<![&|;\s])[ \t]+\([^()]*\)\s*\Z")
_LISTED = re.compile(r",|;|\sand\s")
_AFTERWORD = re.compile(r"\s+(?:[-–—]\s.*|\(.*)")  # noqa: RUF001  # people do write these dashes
_NOTHING = frozenset({"", "none", "n/a", "-", "no commit", "no commit needed"})
_TASK_NAME = re.compile(rf"(?:tasks?[ \t]+|#)?((?:VF|[A-Za-z]{{0,4}}\d+|{KEY})(?:\.\d+)*)", re.ASCII | re.IGNORECASE)
"""A text that is only the id of a task."""
_RANGE = re.compile(r"(?:tasks?[ \t]+)?([A-Za-z]{0,4}(?:\d+\.)*)(\d+)(?:[-\u2013]|\.\.+|[ \t]+(?:to|through)[ \t]+)\1(\d+)", re.ASCII | re.IGNORECASE)  # fmt: skip
_DEPENDS_IN_TITLE = re.compile(r"(?i)[(\[,;][ \t]*(?:depends[ \t]+on|blocked[ \t]+by)[: \t]+([^()\[\]]+)")
_LONGEST_RANGE = 100
_SENTENCE = re.compile(
    r"(?i)(?:make (?:sure|certain)|(?:test|find|see|look|watch) (?:that|if|whether|out)|(?:test|open|start|read|time) (?:the|all))\b"
)
"""The beginnings of sentences whose first word is also the name of a program."""
_CONTINUES = ("\\", "|", "&&", "||")


class Field(NamedTuple):
    """One field of a task."""

    name: str
    """In lower case."""
    value: str
    """The text on the field's own line."""
    segments: Sequence[tuple[str, str]]
    """The paragraphs, list items and code blocks of the field, as pairs of "text" or "code" and the text."""
    proposed: str = ""
    """`proposed by` and the agent's name, if the user has not approved the value yet."""


class Span(NamedTuple):
    """The place of a back-ticked text, including its ticks."""

    start: int
    end: int
    ticks: int
    """The number of back-ticks at each end."""


def read_fields(scanner: Scanner, block: Block, runnable: Runnable, into: Block | None = None) -> None:
    """Set the files, checks, commit, agent and dependencies of a block from its fields.

    They are set in `into` instead, if it is given.
    """
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
                field_commands, reason = _read_verify(field, runnable)
                commands += field_commands
                task.reason = task.reason or reason
            case "commit":
                task.commit = _read_commit(field) if task.commit is None else task.commit
            case "agent":
                name = field.value.strip(" \t\r`*").partition(" ")[0]
                task.agent = task.agent or ("" if name.casefold() in _NOTHING else name)
            case _:
                depends += (name for kind, text in field.segments if kind == "text" for name in named_tasks(text))
    task.files, task.depends = tuple(dict.fromkeys(files)), tuple(dict.fromkeys(depends))
    task.checks = tuple(Check(command=command) for command in dict.fromkeys(commands))


def _read_fields(scanner: Scanner, block: Block) -> list[Field]:
    """Return the known fields of a block in the order of the text. Literal lines hold no fields."""
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


_RAW_FIELD = re.compile(
    r"[ \t]*(?:[-*+][ \t]+)?(?:[^\x00-\x7f\w]{1,4}[ \t]*)?(?:\*\*(?P<bold>[A-Za-z][A-Za-z ]{0,20})(?:\*\*[ \t]*:|:\*\*)"
    r"|(?<=[ \t])(?P<plain>(?i:Files|Verify|Commit))[ \t]*:(?=[ \t]|\Z))[ \t]*(?P<value>.*)"
)
_REPEATED = {"files": "Files", "verify": "Verify"}
"""Fields that may be repeated. Of other fields only the first counts."""


def raw_fields(body: str) -> dict[str, str]:
    """Return the text of all fields of a task, known or not, by their names in lower case.

    Lines below a field keep their indentation relative to it, so that they can be written into another task.
    """
    scanner = Scanner(body.replace("\r\n", "\n"))
    seen = scanner.seen[: scanner.unended] + scanner.flat[scanner.unended :]  # here an unended block hides nothing
    fields: dict[str, str] = {}
    for name, text in _raw_values(scanner.flat.split("\n")[1:], seen.split("\n")[1:]):
        if fields.get(name) and text and name in _REPEATED:
            fields[name] += f"\n  - **{_REPEATED[name]}**: {text}"
        else:
            fields[name] = fields.get(name) or text
    return fields


def _raw_values(lines: Sequence[str], seen: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each field. `seen` are the lines without literal text."""
    name, indent, value = "", 0, list[str]()
    for line, visible in zip(lines, seen, strict=True):
        head, margin = _RAW_FIELD.match(visible), _indent(line)
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
    """Return whether a known field begins at the line break at this offset."""
    return _FIELD.match(text, at) is not None


def find_verify(text: str) -> Iterator[re.Match[str]]:
    """Return the matches of `_FIELD` for all Verify fields in a text."""
    return (head for head in _FIELD.finditer(Scanner(text).seen) if (head["bold"] or head["plain"]).lower() == "verify")


def _read_files(files: Field) -> tuple[str, ...]:
    """Return the paths: back-ticked ones, or plain ones between commas. A plain path has no spaces."""
    paths: dict[str, None] = {}
    for kind, text in files.segments:
        plain = text
        if kind == "text":
            paths.update((span.removeprefix("./"), None) for span in code_spans(text))
            plain = _without_spans(_spans(text), text)
        for part in text.split("\n") if kind == "code" else _LISTED.split(plain):
            if "`" in part:
                continue
            path = _AFTERWORD.sub("", part).strip(" \t\r\n\"'")
            if len(path.split()) == 1 and path.casefold() not in _NOTHING:
                paths[path.removeprefix("./")] = None
    return tuple(paths)


def _without_spans(spans: Sequence[Span], text: str) -> str:
    """Return the text with one back-tick instead of each back-ticked part."""
    kept_from = [0, *(span.end for span in spans)]
    kept_to = [*(span.start for span in spans), len(text)]
    return "`".join(text[start:end] for start, end in zip(kept_from, kept_to, strict=True))


def dependencies_in_title(title: str) -> tuple[str, ...]:
    """Return the ids in a title such as `Add a parser (depends on 1.1)`."""
    return tuple(name for match in _DEPENDS_IN_TITLE.finditer(title) for name in named_tasks(match[1]))


def _read_commit(commit: Field) -> str | None:
    """Return the commit's subject, "" if the plan asks for no commit, or None if the field is empty."""
    text = next((text for _, text in commit.segments), "")
    if not text:
        return None
    quoted = code_spans(text)
    message = quoted[0] if quoted else _REMARK.sub("", text).strip(" \t\r\n`")
    subject = message.partition("\n")[0].strip()
    return "" if subject.casefold().rstrip(".") in _NOTHING else subject


def named_tasks(text: str) -> tuple[str, ...]:
    """Return the ids in a list such as `1.1, 2.1-2.3`. An item that is more than an id is left out."""
    items = (_AFTERWORD.sub("", item).strip(" \t\r\n`*.[]") for item in _LISTED.split(text))
    return tuple(name for item in items for name in _ids(item))


def _ids(item: str) -> Sequence[str]:
    if span := _RANGE.fullmatch(item):
        prefix, first, last = span.groups()
        numbers = range(int(first), int(last) + 1)
        if len(numbers) > _LONGEST_RANGE:
            return ()
        return [f"{prefix}{str(number).zfill(len(first))}" for number in numbers]
    name = _TASK_NAME.fullmatch(item)
    return (name[1],) if name else ()


_NO_COMMAND = re.compile(
    r"[A-Za-z_][\w.]*\([^()]*\)|[\w-]+(?:\.[\w-]+)*\.(?!(?:sh|bash|zsh|exe)\Z)[A-Za-z]\w*"
    r"|(?:[\w-][\w.-]*/)+[\w.-]*\.(?!(?:sh|bash|zsh|py|rb|pl|php|exe|[mc]?[jt]s)\Z)[A-Za-z]\w*"
)
"""Names that bash cannot run: a function call, a file without a folder, or a file in a folder that is no script.

Bash looks for a word without a folder on PATH only.
"""


def _read_verify(verify: Field, runnable: Runnable) -> tuple[Sequence[str], str]:
    """Return the commands that can fail, or the reason why there are none.

    Code blocks and back-ticked parts are commands. If there are none, plain text is one if its first word can run.
    A back-ticked number (`200`, `0`) is an expected value and no command.
    """
    commands: list[str] = []
    for kind, text in verify.segments:
        commands.extend([text] if kind == "code" else code_spans(text))
    commands = [text for text in commands if text and not text.isdigit() and not _NO_COMMAND.fullmatch(text)]
    if not commands:
        plain = verify.segments[:1] if verify.value else verify.segments
        lines = [_plain_command(text) for _, text in plain]
        commands = [line for line in lines if line and not _SENTENCE.match(line) and runnable(first_word(line))]
    checks = [command for command in commands if can_fail(command)]
    if checks:
        return checks, ""
    if commands:
        return (), f"`{commands[0]}` always passes"
    value = " ".join(verify.value.split()) or " ".join(" ".join(text for _, text in verify.segments).split())
    return (), f'"{value}" is not a command' if value else "its **Verify** is empty"


def _parts_below(flat: str, head: re.Match[str], end: int, literals: Sequence[Stretch]) -> Iterator[tuple[str, str]]:
    """Yield the parts of a field below its own line: literal stretches, and lines with a larger indentation."""
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
    """Yield the paragraphs, list items and code blocks of a field."""
    text = [value] if (value := head["value"].strip()) else []
    for kind, part in _parts_below(flat, head, end, literals):
        bullet = _BULLET.match(part) if kind == "text" else None
        if text and (kind == "code" or bullet or not part.strip()):
            yield "text", "\n".join(text)
            text = []
        if kind == "code":
            yield "code", _fenced_text(part)
        elif part.strip():
            text.append(part[bullet.end() :] if bullet else _outdent(part, len(head["indent"]) + 2))
    if text:
        yield "text", "\n".join(text)


def _fenced_text(block: str) -> str:
    """Return the text between the fences, without their indentation."""
    first, *lines = block.rstrip("\n").split("\n")
    bullet = _BULLET.match(first)
    if lines and set(lines[-1].strip()) in ({"`"}, {"~"}):
        lines.pop()
    return "\n".join(_outdent(line, bullet.end() if bullet else _indent(first)) for line in lines).strip("\n")


def _plain_command(text: str) -> str:
    """Return the command in text without back-ticks: its first line, with the lines that continue it."""
    lines = text.split("\n")
    last = 0
    while last + 1 < len(lines) and lines[last].rstrip().endswith(_CONTINUES):
        last += 1
    return _REMARK.sub("", "\n".join(lines[: last + 1])).strip()


def code_spans(text: str) -> list[str]:
    """Return the back-ticked parts of a text, without the ticks."""
    return [inner for span in _spans(text) if (inner := text[span.start + span.ticks : span.end - span.ticks].strip())]


def _spans(text: str) -> list[Span]:
    """Return the back-ticked parts. As in CommonMark, a run of ticks ends at the next run of its length."""
    runs = [match.span() for match in _TICKS.finditer(text)]
    later: dict[int, deque[int]] = defaultdict(deque)
    for place, (start, end) in enumerate(runs):
        later[end - start].append(place)
    spans: list[Span] = []
    after = -1
    for place, (start, end) in enumerate(runs):
        later[end - start].popleft()
        if place > after and later[end - start]:
            after = later[end - start][0]
            spans.append(Span(start, runs[after][1], end - start))
    return spans


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _outdent(line: str, indent: int) -> str:
    """Return the line without at most this many columns of its indentation."""
    return line[min(indent, _indent(line)) :]
