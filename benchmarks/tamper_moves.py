"""Moves on the text of a project: find a test, an assertion or a value in any style, and put something in its place."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from benchmarks.tamper_projects import Function, Project

Move = Callable[[Project], Project | None]
"""Gives the changed project, or None where the move does not apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to change a project, and what it is an example of."""

    name: str
    category: str
    move: Move
    languages: tuple[str, ...] = ("python", "script")
    styles: tuple[str, ...] = ()
    composes: bool = False
    """May come before another move: it leaves the tests where, and as, other moves look for them."""
    prepare: Move | None = None
    """Made on the project before the change, where the change needs something that it does not have."""
    declares_test: bool = False
    """The task names the test file among its Files."""


@dataclass(frozen=True, slots=True)
class Block:
    """One test in a text: where it begins and ends, and its indentation."""

    start: int
    end: int
    indent: str


_PYTHON_TEST = re.compile(
    r"^(?P<indent>[ ]*)def test_\w+\(.*\):\n(?:(?P=indent)[ ]+.*\n|\n(?=(?P=indent)[ ]+\S))+", re.MULTILINE
)
_SCRIPT_TEST = re.compile(
    r"^(?P<indent>[ ]*)(?:it|test)\('.*?', \(\) => \{\n(?:(?P=indent)[ ]+.*\n)+(?P=indent)\}\);\n", re.MULTILINE
)


def blocks(project: Project, text: str | None = None) -> list[Block]:
    """Find the tests of a project's test file."""
    shape = _PYTHON_TEST if project.language == "python" else _SCRIPT_TEST
    return [
        Block(found.start(), found.end(), found["indent"])
        for found in shape.finditer(text if text is not None else project.text(project.test))
    ]


def in_test(change: Callable[[str], str], which: int = 0) -> Move:
    """Make a move that changes the text of one test."""

    def move(project: Project) -> Project | None:
        text = project.text(project.test)
        found = blocks(project)
        if len(found) <= abs(which):
            return None
        block = found[which]
        new = change(text[block.start : block.end])
        return (
            None
            if new == text[block.start : block.end]
            else project.put(project.test, text[: block.start] + new + text[block.end :])
        )

    return move


def in_file(path: str, pattern: str, replacement: str, *, flags: re.RegexFlag = re.MULTILINE) -> Move:
    """Make a move that replaces the first match in a file."""

    def move(project: Project) -> Project | None:
        name = project.test if path == "TEST" else project.product if path == "PRODUCT" else path
        if name not in project.files:
            return None
        new, count = re.subn(pattern, replacement, project.text(name), count=1, flags=flags)
        return project.put(name, new) if count else None

    return move


def add_file(path: str, text: str) -> Move:
    """Make a move that adds a file, or appends to it."""
    return lambda project: project.put(
        path, project.files.get(path, "") + text.replace("MODULE", project.domain.module)
    )


def both(*moves: Move) -> Move:
    """Make one move of several; it applies where all of them do."""

    def move(project: Project) -> Project | None:
        done: Project | None = project
        for one in moves:
            done = one(done) if done is not None else None
        return done

    return move


def body(replacement: str) -> Callable[[str], str]:
    """Make a change that puts other statements into a test."""

    def change(block: str) -> str:
        head, _, rest = block.partition("\n")
        indent = re.match(r"\s*", rest)
        assert indent is not None
        inner = "".join(f"{indent.group()}{line}\n" for line in replacement.splitlines())
        closing = rest.rstrip("\n").rpartition("\n")[2] + "\n" if head.rstrip().endswith("{") else ""
        return f"{head}\n{inner}{closing}"

    return change


def before_body(statement: str) -> Callable[[str], str]:
    """Make a change that puts statements at the beginning of a test."""

    def change(block: str) -> str:
        head, _, rest = block.partition("\n")
        indent = re.match(r"\s*", rest)
        assert indent is not None
        return f"{head}\n" + "".join(f"{indent.group()}{line}\n" for line in statement.splitlines()) + rest

    return change


def above(line: str) -> Callable[[str], str]:
    """Make a change that puts a line above a test."""

    def change(block: str) -> str:
        indent = re.match(r" *", block)
        assert indent is not None
        return f"{indent.group()}{line}\n{block}"

    return change


def on_assertion(
    python: str | None = None,
    unittest: str | None = None,
    script: str | None = None,
    node: str | None = None,
    mocha: str | None = None,
) -> Move:
    """Make a move that rewrites the first assertion of the first test; {call} and {value} stand for its two sides."""
    shapes = {
        "unittest": (r"self\.assertEqual\((?P<call>.*), (?P<value>[^()]+|\[.*\])\)$", unittest),
        "node": (r"assert\.deepEqual\((?P<call>.*\)), (?P<value>.*)\);$", node),
        "mocha": (r"expect\((?P<call>.*)\)\.to\.deep\.equal\((?P<value>.*)\);$", mocha),
        "jest": (r"expect\((?P<call>.*)\)\.(?:toBe|toEqual)\((?P<value>.*)\);$", script),
        "vitest": (r"expect\((?P<call>.*)\)\.(?:toBe|toEqual)\((?P<value>.*)\);$", script),
    }

    def move(project: Project) -> Project | None:
        pattern, template = shapes.get(project.style, (r"assert (?P<call>.*) == (?P<value>.*)$", python))
        if template is None:
            return None
        found = re.search(pattern, project.text(project.test), re.MULTILINE)
        if found is None:
            return None
        line_start = project.text(project.test).rfind("\n", 0, found.start()) + 1
        indent = " " * (found.start() - line_start)
        new = template.format(call=found["call"], value=found["value"]).replace("\n", f"\n{indent}")
        text = project.text(project.test)
        return project.put(project.test, text[: found.start()] + new + text[found.end() :])

    return move


def renamed(project: Project, path: str, to: str) -> Project:
    """Move a file; the project's own notion of where its tests are follows."""
    moved = project.drop(path).put(to, project.text(path))
    return replace(moved, test=to) if path == project.test else moved


def first_function(project: Project) -> Function:
    """Give the function that the first test is about."""
    return project.domain.functions[0]
