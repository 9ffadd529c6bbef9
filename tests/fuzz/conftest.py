"""The projects of the stories, for the bytes that end in none."""

from tests.project import half_done, nursery, outside_of_any_run, project

__all__ = ["half_done", "nursery", "outside_of_any_run", "project"]
