"""Edge: Set a slot up: run the user's commands once in every fresh one."""

from hashlib import sha256

from unstuck.diagnosis import Failure, set_up_failed
from unstuck.line.parts import Bench, Interrupted


def set_up(bench: Bench, name: str, slot: int, *, needs: str | None = None) -> Failure | None:
    """Run the set-up commands once in every fresh worktree; a stamp beside it says that they are done.

    With `needs`, what the files say that the project needs, they are run again when that changes.
    """
    commands = bench.config.workspace.setup
    stamp = bench.workspace.path(slot).with_suffix(".ready")
    done = "\n".join(commands if needs is None else (*commands, sha256(needs.encode(errors="replace")).hexdigest()))
    if not commands or bench.desk.read(stamp) == done:
        return None
    loose, before = bench.workspace.loose(slot), bench.workspace.altered(slot)
    for line in commands:
        bench.seen(name, f"set-up: {line}")
        ended = bench.processes.run(
            bench.command(name, line, slot, timeout=bench.config.workspace.setup_timeout, purpose="setup"),
            stop=bench.stop,
        )
        if ended.ending == "stopped":
            raise Interrupted
        if not ended.ok:
            return set_up_failed(line, ended)
    altered = [path for path in bench.workspace.altered(slot) if path not in before]
    bench.workspace.settle(slot, loose, altered)
    if not altered:  # what it did to the tree itself is undone by the next `prepare`, and must be done again then
        bench.desk.put(stamp, done)
    return None
