"""The edges of the system, as protocols. The engine knows these; adapters implement them."""

from unstuck.ports.agents import Agent, Assignment
from unstuck.ports.home import AlreadyHome, FastForward, Home, Merge, NotPossible, WayHome
from unstuck.ports.judging import Judge, NoJudge, Scanner
from unstuck.ports.processes import Clock, Command, Dialogue, Processes, Stop, TimeLimits
from unstuck.ports.records import Desk, Journal, PlanFile, Projections
from unstuck.ports.workspace import Conflict, Landing, Snapshot, Tree, Watch, Workspace

__all__ = [
    "Agent",
    "AlreadyHome",
    "Assignment",
    "Clock",
    "Command",
    "Conflict",
    "Desk",
    "Dialogue",
    "FastForward",
    "Home",
    "Journal",
    "Judge",
    "Landing",
    "Merge",
    "NoJudge",
    "NotPossible",
    "PlanFile",
    "Processes",
    "Projections",
    "Scanner",
    "Snapshot",
    "Stop",
    "TimeLimits",
    "Tree",
    "Watch",
    "WayHome",
    "Workspace",
]
