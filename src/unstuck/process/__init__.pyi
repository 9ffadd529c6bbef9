from unstuck.process.clock import SystemClock as SystemClock
from unstuck.process.disk import DiskDesk as DiskDesk
from unstuck.process.disk import put as put
from unstuck.process.disk import sweep as sweep
from unstuck.process.owner import Owner as Owner
from unstuck.process.owner import birth as birth
from unstuck.process.owner import host as host
from unstuck.process.processes import LocalProcesses as LocalProcesses
