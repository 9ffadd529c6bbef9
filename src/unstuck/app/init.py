"""Edge: Try out what a repository and its agents can do: gates that fit, run once where tasks are checked; agents, by one small task."""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unstuck.agents.manifests import KnownAgent, agents_on_path, manifest, survey_agents
from unstuck.agents.output_formats import read_recorded_session, transcript_json
from unstuck.app.config_file import NAME as CONFIG_NAME
from unstuck.app.config_file import found_file, has_config
from unstuck.app.run import Run
from unstuck.app.services import Watcher, refuse_inside_an_agent
from unstuck.app.settings import config_here, resolved, works_inside
from unstuck.app.verify_command import first_checking_slot, separate_check_context, told_as_errors
from unstuck.compat.smart_ralph import asked_by
from unstuck.engine.stops import RunStop
from unstuck.git.repository import Repository, find_repository
from unstuck.model.config import GATE_TIMEOUTS, Config, WorkspaceConfig
from unstuck.model.errors import BadUsage, Unavailable
from unstuck.model.event import Options
from unstuck.model.text import counted, one_line
from unstuck.model.verdict import Check, CheckKind, CheckResult
from unstuck.plans.plan_file import open_plan
from unstuck.process.atomic_files import write_atomically
from unstuck.toolchain.detection import Proposal, Stack, detect, joined_checks
from unstuck.verify.baseline import compare
from unstuck.verify.change import part_of
from unstuck.verify.check_cache import open_memory
from unstuck.verify.checks import CleanCheckout, SetupFailed, evidence, hindered, on_base

NAME = "init"
"""The name of the log."""
GREEN, RED, USELESS = "green", "red", "useless"
SAID_CHARS = 120
FOUND = "There is no unstuck.toml, so these checks were found and tried on HEAD (`unstuck init` writes them down):"
BLIND = "it says the same without the code of this repository: what it tests is another copy of it, or nothing"
NO_GUARD = "Nothing was found that could guard this repository. Name what must hold under [checks], or give every task a check of its own."
PLAN = """# Trial

- [ ] 1.1 Write the file hello.txt
  - Its only line is the word `hello`. Change nothing else.
  - **Files**: `hello.txt`
  - **Verify**: `grep -qx hello hello.txt`
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGate:
    """A gate that fits, and what was seen of it."""

    kind: CheckKind
    line: str
    says: str
    kept: bool = True
    """Whether it can guard anything here."""


Proof = tuple[Stack, tuple[FoundGate, ...]]
"""A set-up in which checks can run, and the gates that were run in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstConfig:
    path: Path
    text: str
    notes: tuple[str, ...]
    agents: tuple[str, ...]
    """The known ones on PATH."""


def write_first_config(
    cwd: Path, *, force: bool, run_stop: RunStop, seen: Callable[[str, str], None] | None
) -> FirstConfig:
    """Look at a repository, prove what fits it, and write it down; without anybody who is told, nothing is run."""
    refuse_inside_an_agent()
    repository = find_repository(cwd)
    path = repository.root / CONFIG_NAME
    if path.exists() and not force:
        hint = "Edit it, or replace it with --force: the old one is kept beside it."
        raise BadUsage(f"{path} is there already.", hint=hint)
    stack = detect(repository.root)
    stack, gates = proof = unproven(stack) if seen is None else prove(repository, stack, run_stop, seen)
    text = config_text(agents := agents_on_path(), stack, gates)
    if path.exists():
        path.rename(path.with_name(f"{CONFIG_NAME}.{time.strftime('%Y%m%d-%H%M%S')}.old"))
    write_atomically(path, text)
    notes = stack.notes if _guards(proof) else (*stack.notes, NO_GUARD)
    return FirstConfig(path=path, text=text, notes=notes, agents=agents)


def try_what_fits(cwd: Path, run_stop: RunStop, seen: Callable[[str, str], None]) -> tuple[str, ...]:
    """Prove what fits a repository that nobody configured, and keep it for its runs; say what was seen.

    On a commit that was tried before, everything is known, so this costs nothing.
    """
    refuse_inside_an_agent()
    repository = find_repository(cwd)
    kept = found_file(repository.store)
    if has_config(repository.root):
        with suppress(OSError):  # nobody reads it beside a configuration; a run tells what cannot be written
            kept.unlink()
        return ()
    stack = detect(repository.root)
    stack, gates = prove(repository, stack, run_stop, seen) if stack.proposals else unproven(stack)
    write_atomically(kept, config_text((), stack, gates))
    told = [f"  {gate.kind}: {gate.says}    {gate.line}" for gate in gates if gate.kept]
    return (*((FOUND, *told) if told else ()), *stack.notes)


def unproven(stack: Stack) -> Proof:
    """Return a proposal as it is: nothing was run."""
    gates = [FoundGate(kind=one.kind, line=one.lines[0], says="not run yet") for one in stack.proposals]
    return stack, tuple(gates)


def prove(repository: Repository, stack: Stack, run_stop: RunStop, seen: Callable[[str, str], None]) -> Proof:
    """Set a slot up and run the gates; where that fails or nothing guards, with copies of what the user's checkout has."""
    with first_checking_slot(repository) as slot, told_as_errors():
        proof, notes = None, list[str]()
        try:
            proof = _in_slot(repository, stack, slot, run_stop, seen)
            if not stack.setup or _guards(proof):
                return proof
        except SetupFailed as error:
            said = one_line(error.failure.error or error.failure.summary, SAID_CHARS)
            notes = [f"The set-up `{'; '.join(stack.setup)}` failed: {said}"]
        bare = detect(repository.root, as_it_is=True)
        bare = replace(bare, copy=(*stack.copy, *stack.instead), notes=(*notes, *bare.notes))
        as_it_is = _in_slot(repository, bare, slot, run_stop, seen)
        return as_it_is if proof is None or _guards(as_it_is) else proof


def _guards(proof: Proof) -> bool:
    return any(gate.kept for gate in proof[1])


def _in_slot(
    repository: Repository, stack: Stack, slot: int, run_stop: RunStop, seen: Callable[[str, str], None]
) -> Proof:
    config = Config(workspace=WorkspaceConfig(copy=stack.copy, setup=stack.setup))
    context = separate_check_context(repository, config, slot, run_stop, seen, memory=open_memory(repository, config))
    site = CleanCheckout(context=context, name=NAME, slot=slot)
    site.stand(repository.head)
    nothing = repository.git("hash-object", "-t", "tree", "--stdin", stdin="")
    gates = [gate for proposal in stack.proposals for gate in _tried(site, proposal, repository.head, nothing)]
    return stack, tuple(gates)


def _tried(site: CleanCheckout, proposal: Proposal, head: str, nothing: str) -> Iterator[FoundGate]:
    """Try the lines of a proposal until one is green; else the first that is red in a way that can be compared."""
    tried: list[tuple[str, FoundGate]] = []
    for line in proposal.lines:
        check = Check(command=line, kind=proposal.kind, timeout=GATE_TIMEOUTS[proposal.kind])
        result = on_base(site, check, head)
        grade, says = _judged(site, check, result, head)
        if grade != USELESS and check.kind == "test" and _is_blind(site, check, result, head, nothing):
            red = f"it is red, also without the code of this repository: {_message(site, check, result)}"
            grade, says = USELESS, BLIND if result.ended.ok else red
        tried.append((grade, FoundGate(kind=proposal.kind, line=line, says=says, kept=grade != USELESS)))
        if grade == GREEN:
            break
    best = next((gate for wanted in (GREEN, RED) for grade, gate in tried if grade == wanted), None)
    yield from (best,) if best is not None else ()
    yield from (gate for _, gate in tried if not gate.kept)


def _is_blind(site: CleanCheckout, check: Check, result: CheckResult, head: str, nothing: str) -> bool:
    """Whether a test run says the same though the product is gone: then it tests another copy of it, or nothing.

    `nothing` is a tree without files, which git knows without having it.
    """
    workspace = site.context.workspace
    product = [path for path in workspace.tree_files(workspace.tree_of(head)) if part_of(path) == "product"]
    if not product:
        return False
    site.context.show_activity(NAME, "the same without the code of the repository; it must fail now")
    try:
        without = site.once(check, head, workspace.tree_with_paths(head, nothing, product))
    except SetupFailed:  # what cannot even be set up without the product is made of it
        return False
    finds_none = without.counts is not None and not without.counts.passed
    return (without.ended.ok and not finds_none) or (not result.ended.ok and compare(without, result).verdict == "same")


def _judged(site: CleanCheckout, check: Check, result: CheckResult, head: str) -> tuple[str, str]:
    """Say what a gate is good for, by how it went on HEAD."""
    took = f"in {max(round(result.ended.seconds), 1)} s"
    if result.repaired:
        return USELESS, f"it changes files: {', '.join(result.repaired[:3])}"
    if result.status == "pass":
        counts = result.counts
        if check.kind == "test" and counts is not None and not counts.passed:
            return USELESS, "it runs no test"
        skipped = f", {counts.skipped} skipped" if counts and counts.skipped else ""
        return GREEN, f"{counts.passed} pass{skipped} {took}" if counts else f"passes {took}"
    if result.not_meaningful_because:
        return USELESS, result.not_meaningful_because
    if result.ended.ending != "exited":
        return USELESS, f"it did not end within {check.timeout:.0f} s"
    if hindered(site.context, check, result, head):
        return USELESS, f"it cannot run here: {_message(site, check, result)}"
    if check.kind == "test" and result.counts is None and not result.tests:
        return USELESS, f"it fails before any test: {_message(site, check, result)}"
    if result.flaky or compare(result, result).verdict != "same":
        return USELESS, f"it is red, and what it says cannot be compared: {_message(site, check, result)}"
    return RED, f"red before: {_how_red(result)}; that is excused, more is not"


def _how_red(result: CheckResult) -> str:
    counts = result.counts
    if counts is not None and counts.failed:
        return f"{counts.failed} of {counts.passed + counts.failed} fail"
    return (
        counted(len(result.tests), "test fails" if len(result.tests) == 1 else "test") if result.tests else "findings"
    )


def _message(site: CleanCheckout, check: Check, result: CheckResult) -> str:
    found = site.context.judge.diagnose(evidence(check, result.ended))
    last = next((line for line in reversed(result.ended.tail.splitlines()) if line.strip()), "no output")
    return one_line(site.context.redactor.text(found.message if found else last), SAID_CHARS)


def config_text(agents: Sequence[str], stack: Stack, gates: Sequence[FoundGate]) -> str:
    """Return the text; what was not found, or cannot guard anything, stands there as a comment."""
    lines = ["# How unstuck works on this repository. All keys: unstuck docs configuration", ""]
    lines += [f"# On PATH: {', '.join(agents)}." if agents else "# No known agent was found on PATH."]
    lines += [
        f"# agent = [{_quoted(agents[0] if agents else 'mine')}]    # the first known agent on PATH is used without it",
        "# [agents.mine]",
        "# command = 'my-agent --headless'    # the brief comes on stdin; {brief} is its file",
        "",
    ]
    lines += ["[checks]    # must hold after every task, whatever the task's own Verify says"]
    lines += _gates(gates) or ["# test = '...'    # the command that tells good work from bad"]
    lines += ["", "[workspace]    # what a fresh worktree needs and git does not carry"]
    places = {"copy": stack.copy, "setup": stack.setup}
    lines += [f"{key} = [{', '.join(map(_quoted, values))}]" for key, values in places.items() if values]
    return "\n".join(lines) + "\n"


def _gates(gates: Sequence[FoundGate]) -> list[str]:
    """Write each gate below what was seen of it."""
    lines: list[str] = []
    for check in joined_checks([(gate.kind, gate.line) for gate in gates if gate.kept]):
        lines += dict.fromkeys(f"# {gate.kind}: {gate.says}" for gate in gates if gate.kept and gate.kind == check.kind)
        lines.append(f"{check.kind} = {_quoted(check.command)}")
    for gate in gates:
        if not gate.kept:
            lines += [f"# {gate.kind}: left out, because {gate.says}", f"# {gate.kind} = {_quoted(gate.line)}"]
    return lines


def _quoted(text: str) -> str:
    """Write a TOML string; JSON has the same form."""
    return json.dumps(text, ensure_ascii=False)


def known_agents(cwd: Path) -> tuple[KnownAgent, ...]:
    """Look which coding agents are here: ours, and those of the repository's configuration."""
    return survey_agents(config_here(cwd))


def read_session(cwd: Path, name: str, stdout: Path, stderr: Path | None, exit_code: int | None) -> dict[str, Any]:
    """Return what a recorded session says, in the public form."""
    known = manifest(name, config_here(cwd).agents)
    if known is None or not known.program:
        raise BadUsage(f"There is no known agent {name!r}.", hint="See them with `unstuck agents`.")
    return transcript_json(
        name, read_recorded_session(known.output, stdout, stderr, code=exit_code, meanings=known.exit_codes)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How an agent did with one small task."""

    agent: str
    landed: bool
    end: str
    """Why its session ended, as it was read; empty for an agent whose output is not read."""
    exit_code: int | None
    message: str
    session: str
    cost_usd: float | None
    seconds: float
    sandbox: bool
    """Whether it worked in a sandbox."""


def check_agent(cwd: Path, name: str) -> Trial:
    """Let the agent do one small task in a scratch repository, with one attempt."""
    config = config_here(cwd)
    config = Config(agents=config.agents, limits=config.limits, sandbox=config.sandbox)
    with trial_ground() as plan:
        repository = find_repository(plan.parent)
        plan_file = open_plan(plan, None, root=repository.root)
        wanted = Options(agents=(name,), max_attempts=1, quota="exit")
        options = resolved(wanted, config, asked_by(plan_file))
        run = Run(repository, config, plan_file, options, Watcher())
        run.go()
        task = run.state.tasks["1.1"]
        outcome = task.current.outcome if task.attempts else None
        return Trial(
            agent=name,
            landed=task.status == "complete",
            end=outcome.end if outcome else "",
            exit_code=outcome.ended.exit_code if outcome else None,
            message=(outcome.message or outcome.ended.tail) if outcome else task.question,
            session=outcome.session if outcome else "",
            cost_usd=task.cost_usd,
            seconds=task.seconds,
            sandbox=works_inside(config, name),
        )


def begin_repository(root: Path, name: str, message: str) -> None:
    """Make a repository of a folder, with one commit of all that is in it."""
    identity = (
        "-c",
        f"user.name={name}",
        "-c",
        f"user.email={name.lower()}@example.invalid",
        "-c",
        "commit.gpgSign=false",
    )
    for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", message]):
        subprocess.run(["git", *identity, *arguments], cwd=root, check=True)


def require_git() -> None:
    if shutil.which("git") is None:
        raise Unavailable("git is not on PATH.", hint="Install git 2.38 or newer.")


@contextmanager
def trial_ground() -> Iterator[Path]:
    """Make the repository; yield its plan, and remove everything afterwards."""
    require_git()
    with tempfile.TemporaryDirectory(prefix="unstuck-check-", ignore_cleanup_errors=True) as folder:
        root = Path(folder) / "trial"
        root.mkdir()
        plan = root / "tasks.md"
        plan.write_text(PLAN, encoding="utf-8")
        (root / "readme.txt").write_text("A scratch repository for one trial.\n", encoding="utf-8")
        begin_repository(root, "unstuck", "Begin")
        for key, value in (("user.name", "unstuck"), ("user.email", "unstuck@example.invalid")):
            subprocess.run(["git", "config", key, value], cwd=root, check=True, capture_output=True)
        yield plan
