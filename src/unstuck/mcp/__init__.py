"""The recovery manager as tools for agents, over the Model Context Protocol."""
