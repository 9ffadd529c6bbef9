"""The edges of the system, as protocols. The engine knows these; adapters implement them."""

from unstuck.ports.of_agents import Agent, Assignment
from unstuck.ports.of_home import AlreadyHome, FastForward, Home, Merge, NotPossible, WayHome
from unstuck.ports.of_judging import Judge, NoJudge, Scanner
from unstuck.ports.of_processes import Clock, Command, Dialogue, Processes, Stop, TimeLimits
from unstuck.ports.of_records import Desk, Journal, PlanFile, Projections
from unstuck.ports.of_workspace import Conflict, Landing, Snapshot, Tree, Workspace

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
    "WayHome",
    "Workspace",
]
