"""Why a plan cannot be run, in one message."""

from unstuck.plans import Plan, check


def problems(plan: Plan) -> str:
    """Return everything that makes the plan impossible to run, as one message; empty if nothing does."""
    found = check(plan)
    if not found:
        return ""
    head = f"{plan.path} cannot be run, {len(found)} problem{'s'[: len(found) > 1]}:"
    if not plan.phased:
        lines = [f"  {f'line {one.line}: ' if one.line else ''}{one.message} {one.hint}" for one in found]
        return "\n".join([head, *lines])
    from unstuck.tell import notices  # noqa: PLC0415  # autobuild's blocks, which few plans need

    tasks = {task.id: task for task in plan.tasks}
    wrong = [one for one in found if not one.cycle]
    blocks = [notices.plan_invalid(wrong, plan.path)] if wrong else []
    blocks += [notices.circular_dependency(one.cycle, tasks, plan.noun) for one in found if one.cycle]
    return "\n\n".join([head, *blocks])
