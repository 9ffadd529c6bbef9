"""Edge: The files that people read: written atomically from the state, and looked at for what a person changed in them by hand."""

import json
import os
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unstuck.compat.autobuild import PHASE_STATUS, config, phase
from unstuck.compat.notices import event_notice
from unstuck.compat.smart_ralph import SpecFolder, set_aside
from unstuck.journal.run_state import RunState, fold
from unstuck.journal.task_state import SETTLED
from unstuck.model.errors import unwritable
from unstuck.model.event import Entry, Verb
from unstuck.model.plan import Insertion
from unstuck.model.text import iso, one_line
from unstuck.plans.plan_file import PlanFile
from unstuck.policy.profiles import Limits
from unstuck.policy.schedule import blocked_tasks
from unstuck.process.atomic_files import DiskFiles, write_atomically
from unstuck.reports.event_lines import event_line

Told = Callable[[str], None]
Edit = tuple[Verb, str, str]
"""What to do about which task, and what a person did to ask for that."""
REOPENS = ("pending", "failed")
SETTLES = ("complete", "completed", "skipped")
"""A person says that nothing is left to do; what the task's own attempts left is not landed for that."""
KNOWN = (*REOPENS, *SETTLES, "running", "blocked", "interrupted", "retry")
AT_REST = ("complete", "stuck", "skipped")
SAID_CHARS = 40


SHOWN = ("logs", "transcripts", "briefs", "old")
"""Folders of the store that people look for in `.unstuck/`: links lead there, so that removing those loses nothing."""


def show_store(home: Path, store: Path) -> None:
    """Link the store's folders into `.unstuck/`, where people look for them."""
    try:
        for name in SHOWN:
            (store / name).mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(home / name):
                home.mkdir(parents=True, exist_ok=True)
                (home / name).symlink_to(os.path.relpath(store / name, home))
    except OSError as error:
        raise unwritable(home, error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Projections:
    """The JSON files and reports under `.unstuck/`, and the plan's ticks."""

    home: Path
    store: Path
    """Where logs and transcripts really are."""
    plan: PlanFile
    told: Callable[[str], None]
    """Hears of files that had to be set aside."""
    stack: Mapping[str, str | None] = field(default_factory=dict)
    """What the project is made of, for those who read our files."""
    commands: Mapping[str, str | None] = field(default_factory=dict)
    """The gates, by the names that those readers know."""
    spec: SpecFolder | None = None
    """The folder of a spec, whose own files are kept up, too."""
    limits: Limits = field(default_factory=Limits)

    def write(self, state: RunState, changed: Sequence[str]) -> None:
        """Bring everything up to date; the config, which names the last event covered, comes last."""
        from unstuck.compat.auto_claude import attempt_history, build_commits
        from unstuck.reports.questions import stuck_report
        from unstuck.reports.summaries import lineage_text

        if not self.home.parent.is_dir():  # the checkout was moved or removed: nothing is made in its place
            return
        gone = [name for name, task in state.tasks.items() if task.last_seq and not self._phase(name).exists()]
        if not changed and not gone and (self.home / "config.json").exists():
            return
        ticks, changed = changed, tuple(dict.fromkeys((*changed, *gone)))  # somebody may remove our folder at any time
        show_store(self.home, self.store)
        waiting = blocked_tasks(state)
        for name in changed:
            task = state.tasks[name]
            if name not in waiting and (task.last_seq or task.status != "pending" or self._phase(name).exists()):
                put_json(self._phase(name), phase(state, name, waiting))
            if task.status == "stuck":
                blocks = [other for other, causes in waiting.items() if name in causes]
                write_atomically(
                    self.home / "reports" / f"{name}.md", stuck_report(task, lineage_text(state, name), blocks)
                )
        newly = any(state.tasks[name].status == "stuck" for name in changed)
        for name in (name for name in waiting if newly or name in changed or not self._phase(name).exists()):
            put_json(self._phase(name), phase(state, name, waiting))
        put_json(self.home / "attempt_history.json", attempt_history(state))
        put_json(self.home / "build_commits.json", build_commits(state))
        self._write_checks(state)
        if ticks:
            self.plan.mark(
                {name: "blocked" if name in waiting else state.tasks[name].status for name in (*ticks, *waiting)}
            )
        if self.spec is not None:
            self.spec.write(state, self.limits)
        put_json(
            self.home / "config.json", config(state) | {"stack": dict(self.stack), "commands": dict(self.commands)}
        )

    def redone(self, state: RunState, contents: Mapping[str, bytes]) -> dict[str, bytes]:
        """Write into another version of the plan's files, given by their names, all that we wrote into those on disk."""
        tasks = {name: (task.task.title, task.status) for name, task in state.tasks.items()}
        done = self.plan.redone(contents, tuple(_written(state)), tasks)
        return {**done, **(self.spec.redone(contents, state, self.limits) if self.spec else {})}

    def _write_checks(self, state: RunState) -> None:
        """Write the last verdict of every task for other tools."""
        from unstuck.reports.verdict_formats import junit_xml, sarif_text

        run = state.started.run if state.started else ""
        tasks = state.tasks.values()
        verdicts = [(f"{task.task.id} {task.task.title}", task.verdict) for task in tasks if task.verdict is not None]
        if not verdicts:
            return
        write_atomically(self.home / "checks" / f"{run}.junit.xml", junit_xml(run, verdicts))
        remarks = [remark for _, verdict in verdicts for remark in verdict.remarks]
        findings = self.home / "checks" / f"{run}.sarif"
        if remarks or findings.exists():
            write_atomically(findings, sarif_text(remarks))

    def edits(self, run: str, entries: Sequence[Entry]) -> Iterator[Edit]:
        """Yield what a person asked for by editing files, each task once.

        A file says from which event it was made, so it is compared with the state at that event: a file that is merely
        older than the journal is not an edit. Without the config nobody can tell which files were there at all.
        """
        now = fold(entries)
        found = list(_phases(self.home, run, entries, now, self.told))
        history = read_json(self.home / "attempt_history.json", self.told)
        covered = _made_at(read_json(self.home / "config.json", self.told), run)
        if covered is not None:
            written = fold(entry for entry in entries if entry.seq <= covered)
            found += [*_deleted(self.home, written, now), *_history(history, written, now)]
        once: dict[str, Edit] = {}
        for edit in found:
            once.setdefault(edit[1], edit)
        yield from once.values()

    def _phase(self, name: str) -> Path:
        return phase_file(self.home, name)


def _written(state: RunState) -> Iterator[Insertion]:
    """Yield the tasks that we wrote into the plan, and beside which task each of them stands."""
    for name, task in state.tasks.items():
        beside = task.task.fixes or task.amends
        if task.inserted and beside in state.places:
            before = state.places[name] < state.places[beside]
            yield Insertion(blocks={name: textwrap.dedent(task.task.body)}, beside=beside, before=before)


def put_json(path: Path, content: dict[str, Any]) -> None:
    write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


@dataclass(frozen=True, slots=True)
class ExecutionLog:
    path: Path

    def __call__(self, entry: Entry, state: RunState) -> None:

        lines = [
            f"[{iso(entry.at)}] {entry.seq} {entry.event.type} {event_line(entry.event)}",
            event_notice(entry, state),
        ]
        DiskFiles().append(self.path, "".join(f"{line}\n" for line in lines if line))


def phase_file(home: Path, name: str) -> Path:
    return home / "phases" / f"phase-{name}.json"


def _phases(home: Path, run: str, entries: Sequence[Entry], now: RunState, told: Told) -> Iterator[Edit]:
    """Look for phase files whose status was changed."""
    said: dict[str, tuple[str, int]] = {}
    for name, task in now.tasks.items():
        content = read_json(phase_file(home, name), told)
        at = _made_at(content, run)
        status = str((content or {}).get("status"))
        if at is not None and (status not in KNOWN or _asked(status, task.status)):
            said[name] = status, at
    written_as = _statuses(entries, {name: at for name, (_, at) in said.items()})
    for name, (status, _) in said.items():
        how = f"its status was set to {one_line(status, SAID_CHARS)} by hand"
        verb = _asked(status, now.tasks[name].status)
        if verb is not None and status != written_as[name]:
            yield verb, name, how
        elif status not in KNOWN:
            told(f"Task {name}: {how}, which means nothing here; the journal's own facts are used.")


def _asked(status: str, now: str) -> Verb | None:
    """Say what a status in a file would ask for, given where the task stands."""
    if status in REOPENS and now in AT_REST and PHASE_STATUS.get(now, now) != status:
        return "reset"
    return "skip" if status in SETTLES and now not in SETTLED else None


def _deleted(home: Path, written: RunState, now: RunState) -> Iterator[Edit]:
    """Look for phase files that are gone though they were written."""
    for name, task in written.tasks.items():
        if task.status in AT_REST and task.attempts and name in now.tasks and now.tasks[name].status == task.status:
            file = phase_file(home, name)
            if not file.exists():
                yield "reset", name, f"its file {file.name} was deleted"


def _history(content: dict[str, Any] | None, written: RunState, now: RunState) -> Iterator[Edit]:
    """Look for tasks that were set back, or taken off the stuck list, in `attempt_history.json`.

    It is written before `config.json`, so it is at least as new as the event that the config covers. Where a task has
    not moved since then, the file can differ only by a person's hand.
    """
    if content is None or not isinstance(content.get("subtasks"), dict):
        return
    listed = content.get("stuck_subtasks")
    stuck = {one.get("subtask_id") for one in listed if isinstance(one, dict)} if isinstance(listed, list) else None
    for name, task in written.tasks.items():
        if not task.attempts or name not in now.tasks or now.tasks[name].last_seq != task.last_seq:
            continue
        entry = content["subtasks"].get(name)
        if task.status == "stuck" and stuck is not None and name not in stuck:
            yield "reset", name, "it was taken off the stuck list by hand"
        elif task.status in AT_REST and isinstance(entry, dict) and entry.get("status") in REOPENS:
            yield "reset", name, f"its status in attempt_history.json was set to {entry['status']} by hand"


def _statuses(entries: Sequence[Entry], events: Mapping[str, int]) -> dict[str, str | None]:
    """Return what each task's file said when it was made at the event given, in one replay for all of them."""
    state, found = RunState(), dict[str, str | None]()
    waiting = sorted(events, key=events.__getitem__, reverse=True)
    for entry in entries:
        while waiting and events[waiting[-1]] < entry.seq:
            name = waiting.pop()
            found[name] = phase(state, name)["status"] if name in state.tasks else None
        state.apply(entry)
    return found | {name: phase(state, name)["status"] for name in waiting}


def read_json(path: Path, told: Callable[[str], None]) -> dict[str, Any] | None:
    """Read an object; one that does not parse is kept under another name, and nothing is lost."""
    try:
        content = json.loads(path.read_bytes())
    except OSError:
        return None
    except ValueError:
        told(f"{path.name} is not JSON; a copy is kept as {set_aside(path)}, and the journal's own facts are used.")
        return None
    return content if isinstance(content, dict) else None


def _made_at(content: dict[str, Any] | None, run: str) -> int | None:
    """Say from which event a file was made; None for another run's file, or one that does not say."""
    made = (content or {}).get("unstuck")
    if not isinstance(made, dict) or made.get("run") != run or not isinstance(made.get("event"), int):
        return None
    event: int = made["event"]
    return event
