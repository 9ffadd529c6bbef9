"""Where a run stands: the fold over its journal, the stage that comes next, which tasks may start, a task's past."""
