from unstuck.hook.entry import answer_event as answer_event
from unstuck.hook.installing import AGENTS as AGENTS
from unstuck.hook.installing import Edit as Edit
from unstuck.hook.installing import carry_out as carry_out
from unstuck.hook.installing import edits_to_install as edits_to_install
from unstuck.hook.installing import edits_to_uninstall as edits_to_uninstall
from unstuck.hook.installing import wirings as wirings
