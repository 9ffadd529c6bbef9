"""Edge: what the tools of the MCP server do, for one workspace; the server itself only passes calls on."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from unstuck.compose import hide_ours, look
from unstuck.diagnosis import Diagnosis, Evidence, as_json, open_rulebook
from unstuck.errors import BadUsage, UnstuckError
from unstuck.library import Recovery
from unstuck.plans import Insertion, Task, open_plan

FILE = "recovery.jsonl"


class Clerk:
    """One workspace, and the history that is kept in it."""

    def __init__(self, root: Path, profile: str) -> None:
        self.root = root.resolve()
        ours = self.root / ".unstuck"
        if not ours.exists():
            hide_ours(self.root)
        self.recovery = Recovery(profile=profile, path=ours / FILE, cwd=self.root)

    def diagnose(self, evidence: Evidence) -> dict[str, Any]:
        return as_json(self._found(evidence), evidence)

    def remedy(
        self, evidence: Evidence, tools: list[str] | None, args: dict[str, Any], schema: dict[str, Any] | None
    ) -> dict[str, Any]:
        return dict(self.recovery.remedy(self._found(evidence), tools=tools, args=args, schema=schema))

    def report_step(self, step: str, *, worked: bool, seconds: float, cost: float) -> dict[str, Any]:
        (self.recovery.worked if worked else self.recovery.failed)(step, seconds=seconds, cost=cost)
        return {"step": step, "worked": worked, "noted": True}

    def record_attempt(
        self, task: str, approach: str, evidence: Evidence, *, succeeded: bool, commit: str
    ) -> dict[str, Any]:
        attempt = self.recovery.attempt(task, approach)
        if succeeded:
            return attempt.passed(commit).as_json()
        return attempt.failed(
            evidence.stdout,
            stderr=evidence.stderr,
            exit_code=evidence.exit_code,
            command=evidence.command,
            timed_out=evidence.timed_out,
        ).as_json()

    def attempt_history(self, task: str, approach: str) -> dict[str, Any]:
        past = [{**asdict(one), "kind": str(one.kind) if one.kind else None} for one in self.recovery.history(task)]
        return {
            "task": task,
            "attempts": past,
            "hints": self.recovery.hints(task),
            "circular": self.recovery.circular(task, approach) if approach else "",
        }

    def decide(self, task: str) -> dict[str, Any]:
        if (advice := self.recovery.last(task)) is None:
            raise BadUsage(f"Nothing was recorded of task {task[:80]}.", hint="Call record_attempt first.")
        return advice.as_json()

    def create_fix_task(self, task: str, error: str, attempted_fix: str, plan: str) -> dict[str, Any]:
        """Write a fix task; with a plan it is put behind its original there."""
        if not plan:
            name, text = self.recovery.fix_task(Task(id=task, title=task), error, attempted_fix)
            return {"id": name, "text": text, "plan": None}
        path = self.inside(plan)
        opened = open_plan(path, root=self.root)
        original = next((one for one in opened.read().tasks if one.id == task), None)
        if original is None or not opened.extensible:
            raise BadUsage(
                f"{plan} has no task {task[:80]} that could be repaired by another.", hint="Name a task of the plan."
            )
        name, text = self.recovery.fix_task(original, error, attempted_fix)
        opened.insert(Insertion(blocks={name: text}, beside=task))
        return {"id": name, "text": text, "plan": str(path.relative_to(self.root))}

    def run_status(self) -> dict[str, Any]:
        """Tell where the supervised run stands, if there is one, and which tasks of this history wait for a person."""
        stuck = list(self.recovery.stuck)
        try:
            view = look(self.root)
        except UnstuckError:
            return {"run": None, "tasks": [], "stuck": stuck}
        rows = [asdict(row) for row in view.summary.rows]
        return {"run": view.run, "live": view.owner is not None, "tasks": rows, "stuck": stuck}

    def ask_person(self, task: str, question: str) -> dict[str, Any]:
        report = self.recovery.ask(task, question)
        path = self.root / ".unstuck" / "reports" / f"{task}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(report, encoding="utf-8")
        return {
            "asked": True,
            "report": str(path.relative_to(self.root)),
            "next": "Leave this task and go on with others; a person will answer.",
        }

    def report(self, task: str) -> str:
        return self.recovery.report(task)

    def inside(self, path: str) -> Path:
        """Return a path of the workspace; one that leads out of it, by whatever way, is refused."""
        try:
            found = (self.root / path).resolve()
        except (OSError, ValueError) as error:
            raise BadUsage(f"{path[:80]!r} is no path.", hint="Name a file in the workspace.") from error
        if not found.is_relative_to(self.root):
            raise BadUsage(f"{path[:80]!r} lies outside of the workspace.", hint="Name a file in the workspace.")
        return found

    def _found(self, evidence: Evidence) -> Diagnosis | None:
        return open_rulebook(self.root).diagnose(evidence)
