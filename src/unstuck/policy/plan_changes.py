"""Write the tasks that a run adds to its plan: fix tasks and tasks that an agent requests.

- Text from an error or an agent stays inside its line.
- A requested task gets an id from the supervisor.
- A Verify that an agent proposes counts only if the plan or the configuration already runs its commands. Otherwise it
  is shown to a person, and the gates and the Verify of the original task check the work.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from unstuck.agents.printed_json import UnreadableResult, load_object
from unstuck.journal.task_graph import Lineage
from unstuck.model.action import Fix
from unstuck.model.failure import Kind
from unstuck.model.plan import Task
from unstuck.model.text import one_line
from unstuck.plans.fields import raw_fields
from unstuck.policy.profiles import Limits
from unstuck.shipped import shipped_toml

# --- fix tasks, in the texts of smart-ralph ------------------------------------------------------------------------

TITLE_CHARS = 50
ERROR_CHARS = 300
NO_FILES = "Same directory as original"
NO_VERIFY = "echo 'Verify manually'"
"""Smart-ralph's text. The command always passes, so plan readers ignore it: such a task counts as unverified."""
USUAL_SCOPE = "recovery"
NO_TYPE = "error"

COUNT, DEPTH, BUDGET, CIRCULAR = "fix-count", "fix-depth", "fix-budget", "circular_fix[end]"
FINAL: Mapping[str, str] = {
    COUNT: "FAIL (max limit)",
    DEPTH: "FAIL (max depth)",
    BUDGET: "FAIL (budget)",
    CIRCULAR: "FAIL (circular)",
}
"""The rung that ended a lineage, and its name in smart-ralph's progress file."""
PASSED = "PASS"


def exceeded_fix_limit(lineage: Lineage, limits: Limits) -> tuple[str, str] | None:
    """Return the limit that forbids another fix task, as a rung and smart-ralph's message."""
    task = lineage.chain[-1]
    if len(lineage.fixes) >= limits.fixes:
        history = ", ".join(lineage.fixes)
        return COUNT, f"ERROR: Max fix attempts ({limits.fixes}) reached for task {task}\nFix attempts: {history}"
    chain = f"Fix task chain: {' → '.join(lineage.chain)}"
    if lineage.depth >= limits.fix_depth:
        return DEPTH, (
            f"ERROR: Max fix task depth ({limits.fix_depth}) exceeded for task {task}\n{chain}\n"
            "The fix chain has become too deep. Manual intervention required."
        )
    if lineage.spent >= limits.fixes_per_root:
        return BUDGET, f"ERROR: Max fix tasks ({limits.fixes_per_root}) reached for task {lineage.chain[0]}\n{chain}"
    return None


def fix_block(original: Task, fix: Fix, *, scope: str = "") -> str:
    """Return the fix task in smart-ralph's markdown. `scope` replaces the one of the original's commit."""
    error = safe_line(fix.error, ERROR_CHARS)
    fields = raw_fields(original.body)
    scope = scope or commit_scope(original.commit or "")
    lines = [
        f"- [ ] {fix.id} [FIX {original.id}] Fix: {error_title(fix.error, original.id)}",
        f"  - **Do**: Address the error: {error}",
        f"    1. Analyze the failure: {safe_line(fix.attempted_fix, ERROR_CHARS)}",
        "    2. Review related code in Files list",
        f"    3. Implement fix for: {error}",
        f"  - **Files**: {fields.get('files') or NO_FILES}",
        f'  - **Done when**: Error "{error}" no longer occurs',
        f"  - **Verify**: {fields.get('verify') or NO_VERIFY}",
        f"  - **Commit**: `fix({scope}): address {error_type(fix.error, fix.kind)} from task {original.id}`",
    ]
    return "\n".join(lines) + "\n"


def error_title(error: str, task: str) -> str:
    """Return the error as a title: its first line without markup, cut at a word."""
    first_line = re.sub(r"[`|]", "", error.strip().split("\n", 1)[0])
    title = safe_line(first_line, ERROR_CHARS)
    if not title:
        return f"task {task} failure"
    if len(title) <= TITLE_CHARS:
        return title
    cut = title[: TITLE_CHARS - 1]
    return f"{cut.rpartition(' ')[0] or cut}…"


def safe_line(text: str, limit: int) -> str:
    """Return foreign text as one line in which nothing opens code, a comment or a here-document."""
    line = one_line(text, limit)
    for opener, plain in (("`", "'"), ("<!--", "<! --"), ("-->", "-- >")):
        line = line.replace(opener, plain)
    return re.sub(r"<(?=<)", "< ", line)


def commit_scope(subject: str) -> str:
    """Return the scope of a conventional subject: `feat(parser): …` → parser."""
    match = re.match(r"[a-z]+\(([\w./-]{1,40})\)!?:", subject.strip())
    return match[1] if match else USUAL_SCOPE


def error_type(error: str, kind: Kind | None) -> str:
    """Return a word or two for the sort of error: by its text, else by its kind."""
    table = shipped_toml("telling")["error_types"]
    for word, pattern in table["said"].items():
        if re.search(pattern, error[:2000], re.IGNORECASE):
            return str(word)
    return str(table["kinds"].get(kind, NO_TYPE))


def history_line(task: str, fixes: tuple[str, ...], final: str) -> str:
    """Return a line of the progress file's Fix Task History."""
    count = f"{len(fixes)} fix{'' if len(fixes) == 1 else 'es'} attempted"
    return f"- Task {task}: {count} ({', '.join(fixes)}) - Final: {final}"


# --- tasks that an agent requests ----------------------------------------------------------------------------------

MARKER = "TASK_MODIFICATION_REQUEST"
RequestType = Literal["SPLIT_TASK", "ADD_PREREQUISITE", "ADD_FOLLOWUP"]
REQUIRED_FIELDS = ("do", "files", "done when", "verify", "commit")
MAX_TASKS = 5
MAX_DOTS = 3
FIELD_CHARS = 1000
_HEAD = re.compile(r"- \[[ xX]\][ \t]+(.*)")
_ID = re.compile(r"(?:(?:VF|[A-Za-z]*\d+)(?:\.\d+)*[.:)]?[ \t]+)?(?:\[[^\]]{1,20}\][ \t]*)*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedTask:
    """One task that an agent proposes."""

    title: str
    fields: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """A well-formed request of an agent to change the plan."""

    type: RequestType
    reason: str
    tasks: tuple[ProposedTask, ...]


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """A request that is not carried out, and the reason."""

    because: str


def read_request(text: str, task: str) -> PlanRequest | RefusedRequest | None:
    """Return the last request in a session's output, or None if there is none."""
    lines = text.split("\n")
    places = [place for place, line in enumerate(lines) if line.strip(" *_`#:") == MARKER]
    if not places:
        return None
    below = "\n".join(lines[places[-1] + 1 :])
    brace = below.find("{")
    content = load_object(below[brace:], partly=True) if brace >= 0 else UnreadableResult("no JSON object follows it")
    return RefusedRequest(content.reason) if isinstance(content, UnreadableResult) else _checked_request(content, task)


def _checked_request(content: dict[str, Any], task: str) -> PlanRequest | RefusedRequest:
    request_type, original, texts = (content.get(name) for name in ("type", "originalTaskId", "proposedTasks"))
    if request_type not in get_args(RequestType):
        return RefusedRequest(f"its type is {str(request_type)[:40]!r}")
    if original != task:
        return RefusedRequest(f"it is about task {str(original)[:40]!r}")
    if not isinstance(texts, list) or not 0 < len(texts) <= MAX_TASKS:
        return RefusedRequest(f"it proposes no tasks, or more than {MAX_TASKS}")
    tasks = []
    for text in texts:
        proposed = _proposed_task(text)
        if isinstance(proposed, RefusedRequest):
            return proposed
        tasks.append(proposed)
    reasoning = content.get("reasoning")
    reason = safe_line(reasoning, ERROR_CHARS) if isinstance(reasoning, str) else ""
    return PlanRequest(type=request_type, reason=reason, tasks=tuple(tasks))  # type: ignore[arg-type]  # looked up above


def _proposed_task(text: object) -> ProposedTask | RefusedRequest:
    head = _HEAD.match(text.lstrip()) if isinstance(text, str) else None
    if head is None or not isinstance(text, str):
        return RefusedRequest("a proposed task does not begin with `- [ ] `")
    title = safe_line(_ID.sub("", head[1], count=1), 120)
    fields = raw_fields(text.lstrip())
    missing = [name for name in REQUIRED_FIELDS if not fields.get(name)]
    if missing or not title:
        return RefusedRequest(f"a proposed task has no {missing[0] if missing else 'title'}")
    return ProposedTask(title=title, fields={name: fields[name][:FIELD_CHARS] for name in REQUIRED_FIELDS})


def exceeded_request_limit(made: int, depth: int, ids: Sequence[str], *, max_requests: int, max_depth: int) -> str:
    """Return the limit that forbids the request, or an empty string."""
    if made >= max_requests:
        return f"{max_requests} changes for one task are the most"
    if depth >= max_depth:
        return f"changes of changes go {max_depth} deep at the most"
    if any(name.count(".") > MAX_DOTS for name in ids):
        return f"the id {ids[-1]} has more than {MAX_DOTS} dots"
    return ""


def requested_task_block(
    name: str, proposed: ProposedTask, trusted_commands: Collection[str], after: Task | None = None
) -> tuple[str, str]:
    """Return a proposed task as markdown, and its Verify if that is not used.

    `trusted_commands` are the checks that the plan and the configuration already run. Other commands are an agent's
    text and never become a check. `after` is the task before this one, whose Verify must go on passing.
    """
    fields = proposed.fields
    commands = _commands(fields["verify"])
    is_trusted = bool(commands) and all(command in trusted_commands for command in commands)
    earlier_verify = raw_fields(after.body).get("verify", "") if after else ""
    verify = "; ".join(f"`{command}`" for command in commands) if is_trusted else earlier_verify
    commit = safe_line(fields["commit"].strip("` "), 100)
    lines = [
        f"- [ ] {name} {proposed.title}",
        f"  - **Do**: {safe_line(fields['do'], FIELD_CHARS)}",
        f"  - **Files**: {safe_line(fields['files'], ERROR_CHARS)}",
        f"  - **Done when**: {safe_line(fields['done when'], ERROR_CHARS)}",
        *([f"  - **Verify**: {verify}"] if verify else []),
        f"  - **Commit**: `{commit}`",
    ]
    unused_verify = "" if is_trusted else safe_line(fields["verify"].strip("` "), ERROR_CHARS)
    return "\n".join(lines) + "\n", unused_verify


def _commands(verify: str) -> tuple[str, ...]:
    """Return the commands of a proposed Verify: its back-ticked parts, else its only line."""
    quoted = re.findall(r"`([^`\n]+)`", verify)
    if quoted:
        return tuple(part.strip() for part in quoted)
    return () if "\n" in verify.strip() else (verify.strip(),)
