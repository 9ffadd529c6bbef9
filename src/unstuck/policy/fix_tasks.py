"""Fix tasks: a failure becomes a task of its own that repairs it. Smart-ralph's texts and limits; pure."""

import re
from collections.abc import Mapping

from unstuck.journal.lineage import Lineage
from unstuck.model.action import Fix
from unstuck.model.failure import Kind
from unstuck.model.plan import Task
from unstuck.model.text import one_line
from unstuck.plans.fields import raw_fields
from unstuck.policy.profiles import Limits
from unstuck.shipped import shipped_toml

SUMMARY_CHARS = 50
ERROR_CHARS = 300
NO_FILES = "Same directory as original"
NO_VERIFY = "echo 'Verify manually'"
"""Smart-ralph's text; it always passes, so no reader of ours takes it for a check: such a task is unverified."""
USUAL_SCOPE = "recovery"
NO_TYPE = "error"

COUNT, DEPTH, BUDGET, CIRCULAR = "fix-count", "fix-depth", "fix-budget", "circular_fix[end]"
FINAL: Mapping[str, str] = {
    COUNT: "FAIL (max limit)",
    DEPTH: "FAIL (max depth)",
    BUDGET: "FAIL (budget)",
    CIRCULAR: "FAIL (circular)",
}
"""The rung on which a lineage ended, and what the progress file calls it."""
PASSED = "PASS"


def exceeded(lineage: Lineage, limits: Limits) -> tuple[str, str] | None:
    """Return the limit that forbids another fix task, as a rung and smart-ralph's message; None while one is allowed."""
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
    """Write the fix task in smart-ralph's markdown. Text from an error stays inside its line, whatever it says.

    `scope` replaces the one that the original's own commit names.
    """
    error = harmless(fix.error, ERROR_CHARS)
    fields = raw_fields(original.body)
    scope = scope or commit_scope(original.commit or "")
    lines = [
        f"- [ ] {fix.id} [FIX {original.id}] Fix: {summary(fix.error, original.id)}",
        f"  - **Do**: Address the error: {error}",
        f"    1. Analyze the failure: {harmless(fix.attempted_fix, ERROR_CHARS)}",
        "    2. Review related code in Files list",
        f"    3. Implement fix for: {error}",
        f"  - **Files**: {fields.get('files') or NO_FILES}",
        f'  - **Done when**: Error "{error}" no longer occurs',
        f"  - **Verify**: {fields.get('verify') or NO_VERIFY}",
        f"  - **Commit**: `fix({scope}): address {error_type(fix.error, fix.kind)} from task {original.id}`",
    ]
    return "\n".join(lines) + "\n"


def summary(error: str, task: str) -> str:
    """Return the error as a title: its first line without markup, cut at a word."""
    first = re.sub(r"[`|]", "", error.strip().split("\n", 1)[0])
    words = harmless(first, ERROR_CHARS)
    if not words:
        return f"task {task} failure"
    if len(words) <= SUMMARY_CHARS:
        return words
    return f"{words[: SUMMARY_CHARS - 1].rpartition(' ')[0] or words[: SUMMARY_CHARS - 1]}…"


def harmless(text: str, limit: int) -> str:
    """Fold foreign text into one line in which nothing opens code, a comment or a here-document."""
    line = one_line(text, limit)
    for opener, plain in (("`", "'"), ("<!--", "<! --"), ("-->", "-- >")):
        line = line.replace(opener, plain)
    return re.sub(r"<(?=<)", "< ", line)


def commit_scope(subject: str) -> str:
    """Return the scope of a conventional subject: `feat(parser): …` → parser."""
    found = re.match(r"[a-z]+\(([\w./-]{1,40})\)!?:", subject.strip())
    return found[1] if found else USUAL_SCOPE


def error_type(error: str, kind: Kind | None) -> str:
    """Name the sort of error in a word or two: by what it says, else by how we judged it."""
    words = shipped_toml("telling")["error_types"]
    said = (word for word, shape in words["said"].items() if re.search(shape, error[:2000], re.IGNORECASE))
    return next(said, "") or words["kinds"].get(kind, NO_TYPE)


def history_line(task: str, fixes: tuple[str, ...], final: str) -> str:
    """Write a line of the progress file's Fix Task History."""
    count = f"{len(fixes)} fix{'es'[: 2 * (len(fixes) != 1)]} attempted"
    return f"- Task {task}: {count} ({', '.join(fixes)}) - Final: {final}"
