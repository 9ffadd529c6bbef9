"""One run, kept up to date by what the journal has new: the whole of it for who comes, and what changed for who stays."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from unstuck.journal.run_state import RunState
from unstuck.model.event import Entry
from unstuck.web.charts import Charts
from unstuck.web.overview import LAST_EVENTS, clean, event_object, overview


class Followed:
    """A run as it was last seen. `version` counts the looks at which something was new; a dead supervisor is new, too."""

    def __init__(self) -> None:
        self.state = RunState()
        self.entries: list[Entry] = []
        self.version = 0
        self._charts = Charts()
        self._live: bool | None = None
        self._view: dict[str, Any] = {}
        self._rows: dict[str, dict[str, Any]] = {}
        self._changed: dict[str, int] = {}
        self._order: tuple[list[str], int] = ([], 0)
        self._seqs: list[int] = []

    @property
    def seq(self) -> int:
        return self.state.seq

    def take(self, entries: Iterable[Entry], *, live: bool, now: float) -> None:
        """Take in what is new; a version is counted if anything is."""
        before = self.seq
        for entry in entries:
            owed = self.state.cost_usd
            self.state.apply(entry)
            self._charts.take(entry, self.state.cost_usd - owed)
            self.entries.append(entry)
        if self.seq == before and live == self._live:
            return
        self._live = live
        self.version += 1
        self._seqs.append(self.seq)
        self._view = overview(self.state, self._charts, self.entries, live=live, now=now)
        rows = {row["id"]: row for row in self._view["tasks"]}
        self._changed |= {name: self.version for name, row in rows.items() if self._rows.get(name) != row}
        if list(rows) != self._order[0]:
            self._order = (list(rows), self.version)
        self._rows = rows

    def whole(self) -> dict[str, Any]:
        """Return the whole run as it is now."""
        whole: dict[str, Any] = clean(self._view)
        return whole

    def since(self, version: int) -> dict[str, Any]:
        """Return what changed after a version; the page puts it over what it has."""
        seq = self._seqs[version - 1]
        order, ordered = self._order
        patch: dict[str, Any] = clean({
            "seq": self.seq,
            "run": self._view["run"],
            "questions": self._view["questions"],
            "tasks": [row for name, row in self._rows.items() if self._changed[name] > version],
            "spans": [span for span in self._charts.spans if span["seq"] > seq],
            "bills": [bill for bill in self._charts.bills if bill["seq"] > seq],
            "events": [event_object(one, self.state) for one in self.entries[-LAST_EVENTS:] if one.seq > seq],
            "undoable": sorted(self.state.undoable),
            **({"order": order} if ordered > version else {}),
        })  # fmt: skip
        return patch

    def version_at(self, seq: int) -> int:
        """Return the version that who saw an event of the journal has at least; 0 for one that is not known here."""
        place = bisect_left(self._seqs, seq)
        return place + 1 if place < len(self._seqs) and self._seqs[place] == seq else 0
