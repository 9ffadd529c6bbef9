"""The projects of the stories, for the bytes that end in none."""

from tests.project import fork_server, half_done, outside_of_any_run, project

__all__ = ["fork_server", "half_done", "outside_of_any_run", "project"]
