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
    loose, altered = bench.workspace.loose(slot), bench.workspace.altered(slot) if needs is None else ()
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
    bench.workspace.settle(slot, loose)
    if needs is None:  # what a set-up does to the tree itself, to a lock file say, is not the agent's work
        bench.workspace.put_back(slot, [name for name in bench.workspace.altered(slot) if name not in altered])
    bench.desk.put(stamp, done)
    return None
