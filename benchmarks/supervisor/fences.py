"""The true tree of a project, with every task's part in fences: any state of the work is a way to read it.

A fence is a comment line: `#@ 1.2` opens the part of task 1.2 (`#@ 0` is what the project had before the first task),
`#@ half` and `#@ before` begin other forms of the same part, `#@ end` closes it. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

FENCE = re.compile(r"^\s*(?:#|//)@ (?P<word>\S+)\s*$")
BASE = "0"


class Form(StrEnum):
    """How far a task's part has come."""

    BEFORE = "before"
    HALF = "half"
    TRUE = "true"


@dataclass(frozen=True, slots=True)
class Part:
    """Lines that belong to everybody (no task), or the forms of one task's lines."""

    task: str
    forms: Mapping[Form, str]

    def text(self, form: Form) -> str:
        """Return the lines in a form; what has no half form has the true one instead."""
        if form is Form.HALF:
            return self.forms.get(Form.HALF, self.forms[Form.TRUE])
        return self.forms.get(form, "")

    def found(self, text: str) -> Form:
        """Return the form in which a file holds this part; one that is damaged beyond recognition counts as true."""
        for form in (Form.TRUE, Form.HALF, Form.BEFORE):
            lines = self.forms.get(form, "")
            if lines.strip() and lines.strip("\n") in text:
                return form
        first = next(line for line in self.forms[Form.TRUE].splitlines() if line.strip())
        return Form.TRUE if first in text.splitlines() else Form.BEFORE


Source = tuple[Part, ...]


def parse(text: str) -> Source:
    """Read a fenced file."""
    parts: list[Part] = []
    task, form, forms = "", Form.TRUE, {Form.TRUE: ""}
    for line in text.splitlines(keepends=True):
        fence = FENCE.match(line)
        if fence is None:
            forms[form] += line
            continue
        word = fence["word"]
        if word in {Form.HALF, Form.BEFORE}:
            form = Form(word)
            forms[form] = ""
            continue
        parts.append(Part(task, forms))
        task, form, forms = "" if word == "end" else word, Form.TRUE, {Form.TRUE: ""}
    parts.append(Part(task, forms))
    return tuple(part for part in parts if part.task or part.forms[Form.TRUE])


def render(source: Source, state: Mapping[str, Form]) -> str:
    """Write a file as it stands in a state of the work; the base is there unless the state says otherwise."""
    known = {"": Form.TRUE, BASE: Form.TRUE, **state}
    return "".join(part.text(known.get(part.task, Form.BEFORE)) for part in source)


def state_of(source: Source, text: str) -> dict[str, Form]:
    """Return how far each part of a file has come; the least of a task's parts counts."""
    state: dict[str, Form] = {}
    order = tuple(Form)
    for part in source:
        if part.task:
            state[part.task] = min(part.found(text), state.get(part.task, Form.TRUE), key=order.index)
    return state
