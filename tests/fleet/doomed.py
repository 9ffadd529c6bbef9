"""A supervisor with a fleet that dies by SIGKILL before or after the append that DIE_AT names: `python -m tests.fleet.doomed STORE`."""

import os
import signal
import sys
from collections import Counter
from pathlib import Path

from unstuck.app.open_run import open_run
from unstuck.fleet.postgres_journal import PostgresJournal
from unstuck.git.repository import find_repository
from unstuck.model.event import Entry, Event
from unstuck.process.caller import machine_and_boot


class DoomedLedger(PostgresJournal):
    """A journal in which every append is a place to die, before it and after it."""

    def __init__(self, store: str, project: str, checkout: str) -> None:
        super().__init__(store, project, checkout)
        self.places: Counter[str] = Counter()

    def append(self, event: Event) -> Entry:
        name = f"append {event.type} {getattr(event, 'task', None) or 'run'}"
        self.places[name] += 1
        reach(f"before {name} {self.places[name]}")
        entry = super().append(event)
        reach(f"after {name} {self.places[name]}")
        return entry


def reach(place: str) -> None:
    if place == os.environ.get("DIE_AT"):
        os.kill(os.getpid(), signal.SIGKILL)


def main(store: str) -> int:
    repository = find_repository(Path.cwd())
    project = min(repository.git("rev-list", "--max-parents=0", "HEAD").split())
    place = f"{machine_and_boot()} {repository.common_dir}"
    run = open_run("tasks.md", store=store, open_journal=lambda _path: DoomedLedger(store, project, place))
    return run.go().exit_code or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
