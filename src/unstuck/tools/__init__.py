"""What is known of tools: command lines, stacks, detection, and the doctor."""

from unstuck.doors import door

__getattr__ = door(__name__)
