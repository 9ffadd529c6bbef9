"""A supervisor that stops after every landing until it is told to go on, so that other work can be timed in between.

Started by `overhead.py` as a program: `python supervised.py PLAN AGENT`.
"""

import re
import resource
import sys
from pathlib import Path

from unstuck.app.open_run import open_run
from unstuck.app.services import Watcher
from unstuck.journal.run_state import RunState
from unstuck.model.event import Acted, Entry

LANDED, ENDED = "landed", "ended"


def main() -> None:
    plan, agent = sys.argv[1:]
    run = open_run(plan, agents=[agent], parallel=1, watcher=Watcher(entry=_wait_after_landing))
    summary = run.go()
    _say(ENDED, _peak_kb())
    sys.exit(summary.exit_code)


def _wait_after_landing(entry: Entry, _state: RunState) -> None:
    if isinstance(entry.event, Acted) and entry.event.commit:
        _say(LANDED, entry.event.task, entry.at)
        sys.stdin.readline()


def _say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def _peak_kb() -> int:
    """Return how much memory this process had at the most."""
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"VmHWM:\s*(\d+)", status.read_text())):
        return int(found[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # macOS: in bytes


if __name__ == "__main__":
    main()
