"""Read one phase's section of a superplan: its metadata, checklist, files, commands and commit."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from unstuck.plans.fields import code_spans
from unstuck.plans.superplans.markdown import Document, Heading, Line
from unstuck.plans.superplans.phase_words import normalise
from unstuck.plans.superplans.translated import COLON, LEAD, canonical
from unstuck.tools import Runnable, can_fail, first_word, only_checks

Area = Literal["work", "done", "checkpoint"]

_NAMED = r"[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*"
_DASH = "[-\N{EN DASH}\N{EM DASH}]"
_PHASE = re.compile(
    rf"\W*(?P<word>{LEAD})?(?P<id>{_NAMED})(?:[ \t]*{COLON}[ \t]*|[ \t]+{_DASH}[ \t]+|[ \t]*\Z)(?P<name>.*)",
    re.IGNORECASE,
)
_FACT = re.compile(
    rf"[ \t]*>[ \t]*\**([^\W\d_]{{1,40}}(?: [^\W\d_]{{1,20}}){{0,4}})(?:\*\*[ \t]*{COLON}|{COLON}\*\*|{COLON})[ \t]*(.*)"
)
_UNQUOTED = re.compile(
    rf"[ \t]*(?:[-*+][ \t]+)?\*\*([^\W\d_][^*:\n]{{1,40}}?)(?:\*\*[ \t]*{COLON}|{COLON}\*\*)[ \t]*(.*)"
)
_FACTS = frozenset({"depends on", "dependencies", "parallel with", "can run with", "estimate", "status"})
"""The same facts as many write them; only above the section's first heading, where they cannot be about anything else."""
_BOX = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[([ xX]?)\](?=[ \t]|\Z)[ \t]*(.*)")
_FILE_HEAD = re.compile(r"(?:Files?|Path)[ \t]*:[ \t]*(.+)", re.IGNORECASE)
_FILE_LINE = re.compile(
    r"[ \t]*(?:[-*+][ \t]+)?\**(?:Create|Modify|Update|Edit|Add|Delete|Remove|Test)\**[ \t]*:\**[ \t]*(\S.*)",
    re.IGNORECASE,
)
_VERIFY = re.compile(r"[ \t]*(?:[-*+][ \t]+)?\**(?:Verify|Verification)\**[ \t]*:\**[ \t]*(\S.*)", re.IGNORECASE)
_PASSES = re.compile(
    r"\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|green|(?:runs?|completes?|exits?|builds?) (?:clean\w*|successfully|with(?: exit)?(?: code)? 0)"
    r"|with(?:out| no) (?:any )?(?:errors|failures|warnings)|no (?:errors|failures))\b",
    re.IGNORECASE,
)
"""What a bullet must say of a command, to be more than a sentence about it."""
_COMMIT = re.compile(r"[ \t]*(?:[-*+>][ \t]+)?\**Commit(?:[ \t]+message)?\**[ \t]*:\**[ \t]*(\S.*)", re.IGNORECASE)
_RANGE = re.compile(r"(?::\d+(?:-\d+)?|#L\d+(?:-L?\d+)?)\Z")
_CODE = re.compile(r"`[^`]*`")
_REMARK = re.compile(r"[ \t]+\([^()]*\)\s*\Z")


class Value(NamedTuple):
    """A value of the metadata, and where it stands."""

    text: str
    start: int
    end: int
    line: int


class Box(NamedTuple):
    """A line of a checklist; `place` is where its mark is, or would be."""

    place: int
    mark: str
    text: str
    area: Area


class Declared(NamedTuple):
    """A file that the phase says it will change, with the lines that it names."""

    path: str
    lines: str


@dataclass(slots=True, kw_only=True)
class Section:
    """One phase's section."""

    id: str
    raw: str
    name: str
    line: int
    start: int
    end: int
    facts: dict[str, Value] = field(default_factory=dict)
    boxes: list[Box] = field(default_factory=list)
    files: list[Declared] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    commit: str | None = None

    def fact(self, *names: str) -> Value | None:
        return next((self.facts[name] for name in names if name in self.facts), None)


def find_sections(document: Document, listed: Collection[str], runnable: Runnable) -> Iterator[Section]:
    """Yield the sections of phases. A heading without the word Phase counts only if the overview lists its id."""
    headings = list(document.headings())
    for place, heading in enumerate(headings):
        found = phase_heading(heading, listed)
        if found is None:
            continue
        rest = headings[place + 1 :]
        stop = next(
            (at for at, one in enumerate(rest) if one.level <= heading.level or phase_heading(one, listed)), None
        )
        end = rest[stop].line.start if stop is not None else len(document.text)
        section = Section(
            id=normalise(found["id"]), raw=found["id"], name=found["name"].strip(), line=heading.line.number,
            start=heading.line.start, end=end,
        )  # fmt: skip
        _fill(section, document, rest[:stop], runnable)
        yield section


def phase_heading(heading: Heading, listed: Collection[str]) -> re.Match[str] | None:
    """Return the id and the name in a phase's heading; None for another heading."""
    found = _PHASE.fullmatch(heading.text)
    if found is None or heading.level < 2 or heading.level > 4:  # noqa: PLR2004  # a title is level 1
        return None
    name = normalise(found["id"])
    if name in listed:
        return found
    looks_so = any(char.isdigit() for char in name) or len(name) == 1
    return found if found["word"] and looks_so else None


def _fill(section: Section, document: Document, headings: Sequence[Heading], runnable: Runnable) -> None:
    inside = [line for line in document.lines if section.start < line.start < section.end]
    marks = iter([*headings, None])
    ahead = next(marks)
    area: Area = "work"
    wanted: dict[str, None] = {}
    above = headings[0].line.start if headings else section.end
    for line in inside:
        if ahead is not None and line.number == ahead.line.number:
            area = _area(ahead.text)
            section.files += [Declared(*one) for one in _paths(ahead.text, _FILE_HEAD)]
            ahead = next(marks)
            continue
        fact = _FACT.fullmatch(line.seen) or (_UNQUOTED.fullmatch(line.seen) if line.start < above else None)
        if fact and (line.seen.lstrip().startswith(">") or canonical(fact[1]) in _FACTS):
            at = line.start + fact.start(2)
            section.facts.setdefault(
                canonical(fact[1]), Value(fact[2].rstrip(), at, at + len(fact[2].rstrip()), line.number)
            )
            continue
        if box := _BOX.fullmatch(line.seen):
            of = "checkpoint" if "CHECKPOINT" in box[2] else area
            section.boxes.append(Box(line.start + box.start(1), box[1], box[2].strip(), of))
        if area != "checkpoint":
            _read_line(section, line, wanted, runnable, done=area == "done")
    section.commands = [command for command in wanted if can_fail(command)]


def _read_line(section: Section, line: Line, wanted: dict[str, None], runnable: Runnable, *, done: bool) -> None:
    if verify := _VERIFY.fullmatch(line.seen):
        wanted.update(dict.fromkeys(span for span in code_spans(verify[1]) if span))
    elif done and "`" in line.seen and _PASSES.search(_CODE.sub("", line.seen)):
        commands = (span for span in code_spans(line.seen) if _is_command(span, runnable))
        wanted.update(dict.fromkeys(span for span in commands if only_checks(span)))
    elif commit := _COMMIT.fullmatch(line.seen):
        spans = code_spans(commit[1])
        section.commit = section.commit or (spans[0] if spans else _REMARK.sub("", commit[1]).strip())
    else:
        section.files += [Declared(*one) for one in _paths(line.seen, _FILE_LINE)]


def _area(heading: str) -> Area:
    words = heading.casefold()
    if "definition of done" in words or "quality gate" in words:
        return "done"
    return "checkpoint" if "checkpoint" in words else "work"


def _paths(text: str, shape: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    found = shape.fullmatch(text)
    if found is None:
        return
    for name in code_spans(found[1]) or [_REMARK.sub("", found[1]).strip()]:
        lines = _RANGE.search(name)
        path = _RANGE.sub("", name).strip().removeprefix("./")
        if path and not any(char.isspace() for char in path):
            yield path, lines[0].lstrip(":#") if lines else ""


def _is_command(span: str, runnable: Runnable) -> bool:
    """Whether a back-ticked part of the Definition of Done is a command and not a name: a lone word must be a program."""
    word = first_word(span)
    if not word or word.startswith("/") or not runnable(word):
        return False
    return len(span.split()) > 1 or ("." not in word and "/" not in word and word not in {"test", "time", "read"})
