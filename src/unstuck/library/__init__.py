"""The recovery manager for a loop of one's own: history, decisions, hints, reports and remedies without a supervisor."""

from unstuck.library.counsel import Advice, Past
from unstuck.library.recovery import Recovery
from unstuck.library.trying import Attempt

__all__ = ["Advice", "Attempt", "Past", "Recovery"]
