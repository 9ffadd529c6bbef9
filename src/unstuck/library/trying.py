"""One try at a task in a loop of one's own, under way."""

from typing import TYPE_CHECKING

from unstuck.diagnosis import Evidence, Kind
from unstuck.errors import BadUsage
from unstuck.library.counsel import Advice

if TYPE_CHECKING:
    from unstuck.library.recovery import Recovery


class Attempt:
    """One try under way. End it with `failed` or `passed`; both say what to do next."""

    def __init__(
        self,
        *,
        recovery: "Recovery",
        task: str,
        number: int,
        session: int,
        approach: str,
        hints: str,
        circular: str,
        began: float,
    ) -> None:
        self._recovery = recovery
        self.task, self.number, self.session, self.approach, self.began = task, number, session, approach, began
        self.hints = hints
        """What earlier attempts teach, for the agent's prompt."""
        self.circular = circular
        """A warning, where the approach is like those that failed."""

    def failed(
        self,
        output: str = "",
        *,
        stderr: str = "",
        exit_code: int | None = None,
        signal: str = "",
        tool: str = "",
        command: str = "",
        timed_out: bool = False,
        kind: str | None = None,
        tree: str = "",
    ) -> Advice:
        """Say how it failed; `kind` overrules what the output looks like, `tree` names the files that it left."""
        if kind is not None and kind not in set(Kind):
            raise BadUsage(f"There is no kind {kind!r}.", hint="See the kinds with `unstuck policy`.")
        evidence = Evidence(
            stdout=output,
            stderr=stderr,
            exit_code=exit_code,
            signal=signal,
            tool=tool,
            command=command,
            timed_out=timed_out,
        )
        found = self._recovery.diagnose(evidence, Kind(kind) if kind is not None else None)
        return self._recovery.ended(self, found, tree=tree, commit="")

    def passed(self, commit: str = "", *, tree: str = "") -> Advice:
        """Say that your checks pass; the commit is where later attempts can be rolled back to."""
        return self._recovery.ended(self, None, tree=tree, commit=commit)
