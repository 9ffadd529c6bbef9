"""Run the set-up commands of a workspace."""

from hashlib import sha256

from unstuck.diagnosis.classifying import setup_failure
from unstuck.model.errors import Interrupted
from unstuck.model.failure import Failure
from unstuck.verify.check_context import CheckContext


def set_up(context: CheckContext, task_id: str, slot: int, *, needs: str | None = None) -> Failure | None:
    """Run the set-up commands once in every fresh workspace. Return why one failed, or None.

    A stamp file beside the workspace records that they are done. `needs` is the text of the files that say what the
    project needs: the commands run again when it changes.
    """
    commands = context.settings.workspace.setup
    stamp_file = context.workspace.path(slot).with_suffix(".ready")
    stamp = "\n".join(commands if needs is None else (*commands, _digest(needs)))
    if not commands or context.own_files.read(stamp_file) == stamp:
        return None
    loose_before = context.workspace.untracked_files(slot)
    altered_before = context.workspace.altered_files(slot)
    for line in commands:
        context.show_activity(task_id, f"set-up: {line}")
        command = context.command(
            task_id, line, slot, timeout=context.settings.workspace.setup_timeout, purpose="setup"
        )
        ended = context.processes.run(command, stop=context.stop)
        if ended.ending == "stopped":
            raise Interrupted
        if not ended.ok:
            return setup_failure(line, ended)
    altered = [path for path in context.workspace.altered_files(slot) if path not in altered_before]
    context.workspace.remember_setup(slot, loose_before, altered)
    if not altered:  # the next `prepare` undoes changes of the tree itself, so they must be made again then
        context.own_files.put(stamp_file, stamp)
    return None


def _digest(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()
