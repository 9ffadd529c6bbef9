"""The recovery manager as tools for agents, over the Model Context Protocol."""

from unstuck.doors import door

__getattr__ = door(__name__)
