"""How well outputs are judged: recorded cases with labels in three vocabularies, ours beside the seeds' keyword lists."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import Report, Target
from unstuck.compat.keyword_lists import auto_claude_type, forgekeeper_category
from unstuck.diagnosis.diagnosis_result import Diagnosis
from unstuck.diagnosis.evidence import Evidence
from unstuck.diagnosis.rulebook import open_rulebook
from unstuck.model.errors import BadUsage

VIEWS: Mapping[str, str] = {"type": "A", "category": "B", "phase_type": "C"}
"""Our names for the views, and the letters that the records use."""
OK, NONE = "ok", "none"
GOAL = 0.93
MOST_FALSE_ALARMS = 0.05
SHOWN = 200

AUTOBUILD = {
    "test_failure": ("test failed", "tests failed", "failing test", "assertion", "test failure"),
    "lint_error": ("lint",),
    "typecheck_error": ("type error", "typecheck", "type mismatch"),
    "format_error": ("format",),
    "timeout": ("timeout", "timed out"),
    "parse_error": ("parse error", "invalid json"),
    "dependency_missing": ("not installed", "module not found", "command not found", "cannot find module"),
    "circular_dependency": ("circular", "cycle"),
    "file_conflict": ("conflict",),
}
"""Autobuild names types and no indicators: its own words, as keywords, are the mark in its view."""


@dataclass(frozen=True, slots=True)
class Case:
    """One recorded command, its labels by view, and what else would be right."""

    name: str
    evidence: Evidence
    gold: Mapping[str, str]
    accepted: Mapping[str, frozenset[str]]

    @property
    def ok(self) -> bool:
        return self.gold["type"] == OK


@dataclass(frozen=True, slots=True)
class Judged:
    """What one classifier says of one case in one view."""

    case: Case
    view: str
    said: str

    @property
    def right(self) -> bool:
        return self.said == self.case.gold[self.view]

    @property
    def lenient(self) -> str:
        """The answer, or the label where the answer is as good."""
        return self.case.gold[self.view] if self.said in self.case.accepted[self.view] else self.said


Classifier = Callable[[Evidence], Mapping[str, str]]


def measure(*, file: Path, say: Callable[[str], None]) -> Report:
    """Score the file, and say where we are wrong."""
    cases = read_cases(file)
    say(f"Judging {len(cases)} cases.")
    judged = {name: judge(cases, classifier) for name, classifier in classifiers().items()}
    views = {
        view: {name: scores([one for one in each if one.view == view]) for name, each in judged.items()}
        for view in VIEWS
    }
    short = [Target(name=f"{view}: macro-F1 short of 1", value=round(1 - each["ours"]["macro_f1_lenient"], 3),
                    at_most=round(1 - GOAL, 3)) for view, each in views.items()]  # fmt: skip
    successes = sum(case.ok for case in cases)
    alarms = Target(
        name="false alarms", value=views["type"]["ours"]["false_alarms"], at_most=MOST_FALSE_ALARMS * successes
    )
    return Report(
        figures={"views": views, "cases": len(cases)},
        lines=tuple(_lines(cases, views, judged["ours"])),
        targets=(*short, alarms) if successes else tuple(short),
    )


# --- cases and classifiers -------------------------------------------------------------------------------


def read_cases(path: Path) -> list[Case]:
    """Read the labelled records."""
    try:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        return [_case(number, record) for number, record in enumerate(records, 1)]
    except OSError as error:
        raise BadUsage(f"{path} cannot be read: {error.strerror}.", hint="Name a file of labelled cases.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadUsage(
            f"{path} cannot be read as labelled cases: {error!r}.",
            hint="Each line is one record with labels A, B and C.",
        ) from error


def _case(number: int, record: dict[str, Any]) -> Case:
    success = record.get("outcome") == "success" or all(value is None for value in record["labels"].values())
    labels, accept = record["labels"], record.get("accept", {})
    return Case(
        name=str(record.get("id", number)),
        evidence=Evidence(
            stdout=record.get("stdout") or "",
            stderr=record.get("stderr") or "",
            exit_code=record.get("exit_code"),
            timed_out=bool(record.get("timed_out")),
            tool=record.get("tool") or "",
            command=record.get("command") or "",
        ),
        gold={view: OK if success else _label(view, labels[letter]) for view, letter in VIEWS.items()},
        accepted={
            view: frozenset() if success else frozenset(_label(view, also) for also in accept.get(letter) or ())
            for view, letter in VIEWS.items()
        },
    )


def _label(view: str, label: str | None) -> str:
    """For a failure no word and "unknown" are the same, except in Auto-Claude's view, which has a word for everything."""
    return NONE if view != "type" and label in {None, "unknown"} else str(label)


def classifiers() -> Mapping[str, Classifier]:
    """Return ours and the seeds'."""
    rulebook = open_rulebook()
    return {"ours": lambda evidence: _ours(rulebook.diagnose(evidence)), "seed-002": _keywords, "seed-001": _keywords}


def judge(cases: Sequence[Case], classifier: Classifier) -> list[Judged]:
    return [Judged(case, view, said) for case in cases for view, said in classifier(case.evidence).items()]


def _ours(found: Diagnosis | None) -> Mapping[str, str]:
    if found is None:
        return dict.fromkeys(VIEWS, OK)
    return {view: _label(view, getattr(found, view)) for view in VIEWS}


def _keywords(evidence: Evidence) -> Mapping[str, str]:
    """Judge as the seeds do: exit code 0 is success, else the first keyword."""
    if evidence.exit_code == 0:
        return dict.fromkeys(VIEWS, OK)
    text = f"{evidence.stdout}\n{evidence.stderr}"
    lower = text.lower()
    phase = next((kind for kind, words in AUTOBUILD.items() if any(word in lower for word in words)), NONE)
    return {
        "type": auto_claude_type(text),
        "category": _label("category", forgekeeper_category(evidence)[0]),
        "phase_type": phase,
    }


# --- scores --------------------------------------------------------------------------------------------------


def scores(judged: Sequence[Judged]) -> dict[str, float]:
    """Return accuracy and macro-F1, strict and lenient, and the false alarms."""
    strict = [(one.case.gold[one.view], one.said) for one in judged]
    lenient = [(one.case.gold[one.view], one.lenient) for one in judged]
    return {
        "strict": _accuracy(strict),
        "lenient": _accuracy(lenient),
        "macro_f1": macro_f1(strict),
        "macro_f1_lenient": macro_f1(lenient),
        "false_alarms": sum(one.case.ok and one.said != OK for one in judged),
    }


def macro_f1(pairs: Sequence[tuple[str, str]]) -> float:
    """Return the mean F1 over the classes that occur as labels."""
    each = []
    for label in {gold for gold, _ in pairs}:
        hit = sum(gold == label == said for gold, said in pairs)
        wrong = sum((gold == label) != (said == label) for gold, said in pairs)
        each.append(2 * hit / (2 * hit + wrong))
    return round(sum(each) / len(each), 4) if each else 0.0


def _accuracy(pairs: Sequence[tuple[str, str]]) -> float:
    return round(sum(gold == said for gold, said in pairs) / len(pairs), 4) if pairs else 0.0


def _lines(cases: Sequence[Case], views: Mapping[str, Any], ours: Sequence[Judged]) -> Iterator[str]:
    yield f"{len(cases)} cases, {sum(case.ok for case in cases)} of them successes"
    yield f"{'view':12}{'classifier':12}{'strict':>8}{'lenient':>9}{'F1':>8}{'F1 len.':>9}{'false alarms':>14}"
    for view, each in views.items():
        for name, one in each.items():
            if name == "ours" or (name == "seed-001") == (view == "category"):
                yield (
                    f"{view:12}{name if view != 'phase_type' or name == 'ours' else 'keywords':12}{one['strict']:8.3f}"
                    f"{one['lenient']:9.3f}{one['macro_f1']:8.3f}{one['macro_f1_lenient']:9.3f}{one['false_alarms']:14d}"
                )
    yield ""
    yield "Confusions (label -> answer), lenient:"
    wrong = [one for one in ours if one.lenient != one.case.gold[one.view]]
    for (view, gold, said), count in Counter(
        (one.view, one.case.gold[one.view], one.said) for one in wrong
    ).most_common():
        yield f"  {count:4}  {view}: {gold} -> {said}"
    yield "Misses:"
    for one in wrong[:SHOWN]:
        command = one.case.evidence.command.replace("\n", " ")[:60]
        yield f"  {one.case.name}: {one.view} {one.case.gold[one.view]} -> {one.said}  `{command}`"
