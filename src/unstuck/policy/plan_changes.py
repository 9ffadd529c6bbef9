"""What an agent asks to change in the plan: split its task, put one before it, or add one after it. Pure.

A proposal is text that an agent wrote. Its tasks get ids of ours, its fields are folded into single lines, and its
Verify is believed only where it names commands that the plan or the configuration already runs; else it is shown to a
person, and what the task promises is checked by the gates and, with all that belongs to it, by its original's Verify.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from unstuck.agents.claims import Unreadable, load_object
from unstuck.model.plan import Task
from unstuck.plans.fields import raw_fields
from unstuck.policy.fix_tasks import ERROR_CHARS, harmless

MARKER = "TASK_MODIFICATION_REQUEST"
Sort = Literal["SPLIT_TASK", "ADD_PREREQUISITE", "ADD_FOLLOWUP"]
REQUIRED = ("do", "files", "done when", "verify", "commit")
MOST_TASKS = 5
MOST_DOTS = 3
FIELD_CHARS = 1000
_HEAD = re.compile(r"- \[[ xX]\][ \t]+(.*)")
_ID = re.compile(r"(?:(?:VF|[A-Za-z]*\d+)(?:\.\d+)*[.:)]?[ \t]+)?(?:\[[^\]]{1,20}\][ \t]*)*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One task that an agent proposes."""

    title: str
    fields: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """A request that makes sense so far."""

    sort: Sort
    reason: str
    proposals: tuple[Proposal, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that is not carried out, and why."""

    because: str


def read_request(text: str, task: str) -> Amendment | Refused | None:
    """Read the last request in a session's output; None if there is none."""
    lines = text.split("\n")
    at = next((at for at in range(len(lines) - 1, -1, -1) if lines[at].strip(" *_`#:") == MARKER), None)
    if at is None:
        return None
    below = "\n".join(lines[at + 1 :])
    brace = below.find("{")
    found = load_object(below[brace:], partly=True) if brace >= 0 else Unreadable("no JSON object follows it")
    return Refused(found.reason) if isinstance(found, Unreadable) else _checked(found, task)


def _checked(content: dict[str, Any], task: str) -> Amendment | Refused:
    sort, of, proposed = (content.get(name) for name in ("type", "originalTaskId", "proposedTasks"))
    if sort not in get_args(Sort):
        return Refused(f"its type is {str(sort)[:40]!r}")
    if of != task:
        return Refused(f"it is about task {str(of)[:40]!r}")
    if not isinstance(proposed, list) or not 0 < len(proposed) <= MOST_TASKS:
        return Refused(f"it proposes no tasks, or more than {MOST_TASKS}")
    found = [_proposal(text) for text in proposed]
    if refused := next((one for one in found if isinstance(one, Refused)), None):
        return refused
    proposals = tuple(one for one in found if isinstance(one, Proposal))
    reason = content.get("reasoning")
    told = harmless(reason, ERROR_CHARS) if isinstance(reason, str) else ""
    return Amendment(sort=sort, reason=told, proposals=proposals)  # type: ignore[arg-type]  # looked up above


def _proposal(text: object) -> Proposal | Refused:
    head = _HEAD.match(text.lstrip()) if isinstance(text, str) else None
    if head is None or not isinstance(text, str):
        return Refused("a proposed task does not begin with `- [ ] `")
    title = harmless(_ID.sub("", head[1], count=1), 120)
    fields = raw_fields(text.lstrip())
    missing = [name for name in REQUIRED if not fields.get(name)]
    if missing or not title:
        return Refused(f"a proposed task has no {missing[0] if missing else 'title'}")
    return Proposal(title=title, fields={name: fields[name][:FIELD_CHARS] for name in REQUIRED})


def over_limit(made: int, depth: int, ids: Sequence[str], *, most: int, deepest: int) -> str:
    """Say which limit forbids the request; empty if none does."""
    if made >= most:
        return f"{most} changes for one task are the most"
    if depth >= deepest:
        return f"changes of changes go {deepest} deep at the most"
    if any(name.count(".") > MOST_DOTS for name in ids):
        return f"the id {ids[-1]} has more than {MOST_DOTS} dots"
    return ""


def amended_block(name: str, proposal: Proposal, known: Collection[str], after: Task | None = None) -> tuple[str, str]:
    """Write a proposed task; also return the check that it proposes and that is not taken, if any.

    `known` are the commands that the plan and the configuration run anyway. Anything else is an agent's text, which
    never becomes a check. `after`: the task that is done before this one, whose Verify must go on to hold.
    """
    fields = proposal.fields
    commands = _commands(fields["verify"])
    trusted = bool(commands) and all(command in known for command in commands)
    held = raw_fields(after.body).get("verify", "") if after else ""
    verify = "; ".join(f"`{command}`" for command in commands) if trusted else held
    commit = harmless(fields["commit"].strip("` "), 100)
    lines = [
        f"- [ ] {name} {proposal.title}",
        f"  - **Do**: {harmless(fields['do'], FIELD_CHARS)}",
        f"  - **Files**: {harmless(fields['files'], ERROR_CHARS)}",
        f"  - **Done when**: {harmless(fields['done when'], ERROR_CHARS)}",
        *([f"  - **Verify**: {verify}"] if verify else []),
        f"  - **Commit**: `{commit}`",
    ]
    return "\n".join(lines) + "\n", "" if trusted else harmless(fields["verify"].strip("` "), ERROR_CHARS)


def _commands(verify: str) -> tuple[str, ...]:
    """Return the commands of a proposed Verify: its back-ticked parts, else its one line."""
    quoted = re.findall(r"`([^`\n]+)`", verify)
    return tuple(part.strip() for part in quoted) if quoted else (verify.strip(),) if "\n" not in verify.strip() else ()
