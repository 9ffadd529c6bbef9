"""What stands under a target, a job or a script that checks may not be made to pass, nor go without something in its place."""

import re
from collections.abc import Collection, Iterator, Sequence

from unstuck.journal import Remark
from unstuck.verify.audit.settings import LONGEST, flatten
from unstuck.verify.change import Change, found, is_judge, part_of, pattern


def judge_recipes(changes: Sequence[Change], told: Collection[str]) -> Iterator[Remark]:
    """Find commands of checks that stood on the base and are green whatever happens, or gone; `told`: paths of which all is said."""
    texts = "\n".join(one.new or "" for one in changes if is_judge(one.path))
    runs = "\n".join(line for line in texts.splitlines() if not pattern("recipe", "idle").match(line.strip()))
    for change in changes:
        if part_of(change.path) in {"settings", "commands"} and not change.binary and change.path not in told:
            yield from _judge(change, runs)


def _judge(change: Change, runs: str) -> Iterator[Remark]:
    """Hold the recipes of one file against what they were; `runs`: all lines of the new judge that run something."""
    now = _recipes(change.path, change.new)
    for name, commands in _recipes(change.path, change.old).items():
        ours = now.get(name, [])
        kept = [one for one in ours if not pattern("recipe", "idle").match(one)]
        lost = [one for one in commands if one not in ours and not pattern("recipe", "idle").match(one)]
        bent = [one for one in kept if one not in commands and _made_green(one, lost)]
        ended = bent or [one for one in ours if one == "exit 0" and commands and one not in commands]
        if ended:
            says = "A failing command is made to look like a success."
            yield found("always-green", change.path, _line_of(change.new, ended[0]), says, ended[0])
        elif lost and {*kept} <= {*commands} and ((name in now and not kept) or lost[0] not in runs):
            says = f"{change.path} no longer runs this ({name})."
            yield found("check-changed", change.path, _line_of(change.old, lost[0]), says, lost[0])


def _made_green(command: str, lost: list[str]) -> bool:
    """Tell whether a command is one that stood there, with something about it that makes it pass."""
    green = pattern("settings", "green").search(command) or pattern("recipe", "ignored").match(command)
    return green is not None and any(one.strip("@+-'\")") in command for one in lost)


def _recipes(path: str, text: str | None) -> dict[str, list[str]]:
    """Give the commands of everything that checks, by its name: a target, a job with its step, a section, a key, a script."""
    out: dict[str, list[str]] = {}
    if re.search(r"\.(?:json|toml)$", path):
        keys = flatten(path, text).items()
        return {
            key: [*values] for key, values in keys if all(pattern("recipe", x).search(key) for x in ("key", "checks"))
        }
    if len(text or "") > LONGEST or (part_of(path) != "commands" and not path.endswith("tox.ini")):
        return out
    in_yaml = re.search(r"\.ya?ml$", path) is not None
    script = path.rpartition("/")[2] if pattern("recipe", "script").search(path) else ""
    stack: list[tuple[int, str]] = []
    for line in (text or "").splitlines():
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        depth = -1 if re.fullmatch(r"\[[^\]]+\]", bare) else len(line) - len(line.lstrip())
        while stack and stack[-1][0] >= depth:
            stack.pop()
        name = " ".join(filter(None, (script, *(_heading(one) for _, one in stack))))
        command = _command(bare, stack[-1][1] if stack else "", in_yaml=in_yaml)
        if command and (stack or script) and pattern("recipe", "checks").search(name):
            out.setdefault(name, []).append(command)
        stack.append((depth, bare))
        out.setdefault(f"{name} {_heading(bare)}".strip(), [])
    return out


def _heading(bare: str) -> str:
    """Give the name that a line gives to those below it; the word for "commands" is none."""
    if pattern("recipe", "steps").fullmatch(bare):
        return ""
    return bare if re.match(r"(?:- )?name:", bare) else re.split(r""":(?:\s|$)|\s*(?:[{=]|\((?!['"]))""", bare)[0]


def _command(bare: str, above: str, *, in_yaml: bool) -> str:
    """Give what a line runs; empty where it runs nothing, as a key, a closing word or a list of files."""
    if in_yaml:
        match = pattern("recipe", "step").match(bare)
        return match[1] if match else bare.removeprefix("- ") if pattern("recipe", "steps").fullmatch(above) else ""
    if ("=" in above and not pattern("recipe", "steps").fullmatch(above)) or pattern("recipe", "no_command").match(
        bare
    ):
        return ""
    return re.sub(r"^([@+]*-)\s+", r"\1", re.sub(r"^commands\w*\s*=\s*", "", bare))


def _line_of(text: str | None, command: str) -> int:
    return next((number for number, line in enumerate((text or "").splitlines(), 1) if command in line), 1)
