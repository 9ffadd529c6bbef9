"""Carry out the requests of the user: each becomes one event, done or refused with a reason."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from unstuck.engine.recorder import Recorder
from unstuck.engine.stops import RunStop, TaskStop
from unstuck.git.protocols import Workspace
from unstuck.journal.stages import Stage
from unstuck.journal.store import Journal
from unstuck.journal.task_state import awaits_approval
from unstuck.model.event import Operated, Request, Verb

STOPPED_BY_REQUEST = 3
REACHES_SESSION: tuple[Verb, ...] = ("retry", "answer")
"""Requests whose text can be sent to a running session."""
APPROVE = "Approve it with: unstuck approve; then: unstuck resume"
"""End of the reason why a run waits for approval before it begins."""
OF_THE_RUN: tuple[Verb, ...] = ("stop", "approve", "rollback", "undo")
"""Requests that name no task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHandler:
    """The requests of one run, taken in order by its owner."""

    recorder: Recorder
    journal: Journal
    workspace: Workspace
    stop_signal: RunStop

    def take(self, running: Mapping[str, tuple[int, TaskStop]]) -> None:
        """Carry out all waiting requests. One about a running task reaches its session, or ends it first."""
        for request in self.journal.requests(self.recorder.state.seen_request):
            if refused := refusal_of(request):
                self.refuse(request, refused)
                continue
            if request.task is not None and request.task in running:
                task = running[request.task][1]
                if request.verb not in REACHES_SESSION or not request.text or not task.takes_messages or task.ended:
                    task.ended = True
                    return
                task.send(request.text)
                self.recorder.record(Operated(request=request))
                self.recorder.note(
                    f"What a person said reached the running session of task {request.task}.", request.task
                )
                continue
            self.carry_out(request, live=bool(running))

    def carry_out(self, request: Request, *, live: bool) -> Operated:
        """Record the request as an event, then carry out its effect."""
        if refused := refusal_of(request):
            return self.refuse(request, refused)
        if request.task is not None:
            self.put_away(request.task)
        if (
            request.task is not None or request.verb not in OF_THE_RUN
        ) and request.task not in self.recorder.state.tasks:
            answer: Operated | str = f"There is no task {request.task} in this run."
        else:
            answer = ANSWERS[request.verb](self, request)
        if live and isinstance(answer, Operated) and answer.before is not None:
            answer = "The run's branch is not moved while tasks run: `unstuck stop` first."
        operated = answer if isinstance(answer, Operated) else Operated(request=request, refused=answer)
        self.recorder.record(operated)
        self.redo()
        return operated

    def refuse(self, request: Request, why: str) -> Operated:
        """Record a refused request and note it for the summary."""
        operated = Operated(request=request, refused=why)
        self.recorder.record(operated)
        self.recorder.note(why)
        return operated

    def put_away(self, name: str) -> None:
        """Keep the work of an unfinished attempt before its task starts over and its slot is reset."""
        task = self.recorder.state.tasks.get(name)
        if task is None or not task.attempts or task.accepted or task.stage in (Stage.OPEN, Stage.REST):
            return
        snapshot = self.workspace.snapshot(task.current.slot, str(task.last_seq))
        if snapshot is not None and not any(snapshot.ref in note for note in task.notes):
            self.recorder.note(f"The unfinished work of task {name} is kept at {snapshot.ref}.", name)

    def redo(self) -> None:
        """Move the branch where the last request wants it and keep the commit it leaves. Harmless to repeat."""
        seq, operated = self.recorder.state.last_operation
        if operated is None or operated.refused or operated.before is None or operated.after is None:
            return
        if self.workspace.tip() == operated.before != operated.after and self.recorder.state.tip == operated.after:
            self.workspace.keep_commit(str(seq), operated.before)
            self.workspace.move_branch(operated.after, expected=operated.before)

    # --- one method per request: it returns the event, the reason of a refusal, or "" for a plain yes

    def stop(self, _request: Request) -> Operated | str:
        self.stop_signal.request("`unstuck stop` was asked for.", STOPPED_BY_REQUEST)
        return ""

    def retry(self, request: Request) -> Operated | str:
        if self._status(request) == "complete":
            return f"Task {request.task} has landed; to do it again: unstuck reset {request.task}"
        return self.reopen(request)

    def reopen(self, request: Request) -> Operated:
        return Operated(request=request, reopened=(request.task,) if request.task else ())

    def skip(self, request: Request) -> Operated | str:
        return (
            f"Task {request.task} has landed; there is nothing to skip." if self._status(request) == "complete" else ""
        )

    def accept(self, request: Request) -> Operated | str:
        task = self.recorder.state.tasks[request.task or ""]
        if not request.text.strip():
            return "Work is accepted for a reason, and none was given."
        if task.status == "complete":
            return f"Task {request.task} has landed already."
        if task.verdict is None:
            return f"Task {request.task} has no work that could be accepted."
        if request.shown_tree and request.shown_tree != task.verdict.tree:
            return f"The work of task {request.task} is another one than was shown; look again and say it again."
        if not task.can_be_accepted:
            return f"Attempt {len(task.attempts)} of task {request.task} left nothing that could land; to go on without it: unstuck skip {request.task}"
        return ""

    def approve(self, request: Request) -> Operated | str:
        """Approve the work of one task, or everything in the run that waits for approval."""
        state = self.recorder.state
        if request.task is not None and not awaits_approval(state.tasks[request.task]):
            return f"Task {request.task} does not wait for an approval."
        held = state.ended is not None and state.ended.reason.endswith(APPROVE) and not state.may_continue
        if request.task is None and not held and not any(map(awaits_approval, state.tasks.values())):
            return "Nothing waits for an approval."
        return ""

    def rollback(self, request: Request) -> Operated | str:
        """Move the run's branch back to the commit in `request.text`. Tasks that landed after it are open again."""
        state, tip = self.recorder.state, self.workspace.tip()
        target = request.text
        base = state.started.base if state.started else tip
        kept = set(self.workspace.history(target, base))
        if target not in self.workspace.history(tip, base):
            return f"Commit {target[:12]} is not on the run's branch."
        reopened = tuple(
            name for name, task in state.tasks.items() if task.commit is not None and task.commit not in kept
        )
        return Operated(request=request, reopened=reopened, before=tip, after=target)

    def undo(self, request: Request) -> Operated | str:
        """Undo the event with the number in `request.text`, or the last one that can be undone."""
        state = self.recorder.state
        last = max(state.undoable, default=None)
        number = (int(request.text) if request.text.isdecimal() else None) if request.text else last
        undo = state.undoable.get(number) if number is not None else None
        if number is None or undo is None:
            return "There is nothing to undo there. `unstuck log` shows the events."
        later = [task.task.id for task in undo.states if state.tasks[task.task.id].last_seq > number]
        if later:
            return f"Task {later[0]} has gone on since event {number}."
        if undo.snapshot and undo.task and state.tasks[undo.task].status == "complete":
            return f"Task {undo.task} has landed since; `unstuck rollback {undo.task}` comes first."
        if undo.after is not None and self.workspace.tip() != undo.after:
            return f"The run's branch has moved since event {number}."
        return Operated(request=request, undoes=number, before=undo.after, after=undo.before)

    def _status(self, request: Request) -> str:
        return self.recorder.state.tasks[request.task or ""].status


def refusal_of(request: Request) -> str:
    """Return why a request is not the user's own, or an empty string."""
    if request.verb not in ANSWERS and not request.inside:
        return f"Row {request.id} of the journal's requests is none that unstuck wrote; it was left alone."
    command = " ".join(part for part in (request.verb, request.task or "") if part)
    if (
        request.doubt and not request.inside and request.verb != "stop"
    ):  # a process that can forge a stop could send a signal as well
        return f"`unstuck {command}` was found in the journal and {request.doubt}, so it was refused. If it was you: say it again."
    if request.inside:
        return f"`unstuck {command}` was asked for inside of {request.inside}; only a person can, so it was refused."
    return ""


ANSWERS: Mapping[Verb, Callable[[RequestHandler, Request], Operated | str]] = {
    "stop": RequestHandler.stop,
    "retry": RequestHandler.retry,
    "answer": RequestHandler.retry,
    "reset": RequestHandler.reopen,
    "skip": RequestHandler.skip,
    "accept": RequestHandler.accept,
    "approve": RequestHandler.approve,
    "rollback": RequestHandler.rollback,
    "undo": RequestHandler.undo,
}
