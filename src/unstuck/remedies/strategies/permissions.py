"""Ways out of a denied path: the same place inside the sandbox, or a mode that is ours to change."""

import re
import shlex

from unstuck.remedies import subject as reading
from unstuck.remedies.paths import parent_of, sandboxed
from unstuck.remedies.situation import PATH_KEYS, Situation
from unstuck.remedies.step import Expects, ListFolder, MakeFolder, Recipe, Shell, Step, WriteFile

WRITERS = frozenset(
    {"touch", "mkdir", "cp", "mv", "tee", "install", "ln", "dd", "rsync", "tar", "unzip", "curl", "wget", "git"}
)
WRITING = re.compile(
    r"cannot (?:create|touch|open|make)|EROFS|[Rr]ead-only|Failed to open|unable to (?:create|write)|could not create"
)


def try_sandbox_directory(s: Situation) -> Recipe | str:
    """Write to the same place below the sandbox, its folders kept."""
    denied = reading.path(s)
    if not denied:
        return "the failure names no path"
    if not _writes(s, denied):
        return f"reading {denied} cannot be moved elsewhere"
    target = sandboxed(denied, s.around.root, s.preferences.sandbox)
    prepare = Step(
        action="Make its folder in the sandbox",
        deed=MakeFolder(path=parent_of(target)),
        expected=f"{parent_of(target)} exists",
        expects=Expects(exists=(parent_of(target),)),
    )
    moved = _moved(s, denied, target)
    if moved is None:
        return f"{denied} stands nowhere in the call where it could be replaced"
    look = Step(
        action="Look at what was written", deed=ListFolder(path=parent_of(target)), expected=f"{target} is listed"
    )
    return Recipe(steps=(prepare, moved, look))


def check_permissions(s: Situation) -> Recipe | str:
    """Run a script without its mode, or set a mode that is ours to set; sudo only where it is allowed."""
    place = s.around.place
    if place is None or not place.exists:
        return "there is no path whose permissions could be looked at"
    words = s.call.words
    script = bool(words) and not place.is_folder and not place.executable
    if words and script and words[0] in {place.path, f"./{place.path}"}:
        interpreter = place.interpreter or ("bash",)
        step = s.again(
            f"Run {place.path} by its interpreter: it may not be executed itself", words=(*interpreter, *words)
        )
        return Recipe(steps=(step,), requires=(interpreter[0].rsplit("/", 1)[-1],))
    if place.mine and place.inside:
        mode = "u+rwx" if place.is_folder else "u+rw"
        steps = (
            Step(
                action=f"Look at the mode of {place.path}",
                deed=Shell(argv=("ls", "-ld", "--", place.path)),
                expected="Its mode",
                expects=Expects(prints=True),
            ),
            Step(
                action=f"Give its owner access to {place.path}",
                deed=Shell(argv=("chmod", mode, "--", place.path)),
                expected="The mode is set",
                risk="caution",
            ),
            s.again("Call it again, now that it is accessible"),
        )
        return Recipe(steps=steps, requires=("chmod",))
    words = s.call_words()
    if words is None or s.around.superuser:
        return f"{place.path} is not ours to change"
    if s.preferences.never_sudo:
        return "it needs sudo, and the configuration says `never_sudo`"
    if not s.around.has("sudo"):
        return "there is no sudo"
    step = Step(
        action="Call it with the rights of the superuser",
        deed=Shell(argv=("sudo", "-n", *words)),
        expected="The call succeeds",
        risk="privileged",
        again=True,
    )
    return Recipe(steps=(step,), requires=("sudo",))


def _writes(s: Situation, denied: str) -> bool:
    """Whether the call was about to write there."""
    if not s.is_command:
        return any(key in s.call.args for key in ("content", "text", "data", "body")) or "write" in s.call.tool.lower()
    if re.search(rf">\s*(?:{re.escape(denied)}|{re.escape(shlex.quote(denied))})", s.call.line):
        return True
    words = s.call.words or ()
    return bool(WRITING.search(s.text)) or (
        bool(words) and words[0].rsplit("/", 1)[-1] in WRITERS and denied in words[1:]
    )


def _moved(s: Situation, denied: str, target: str) -> Step | None:
    action = "Write it to the sandbox instead"
    made = Expects(exists=(target,))
    if not s.is_command:
        content = next(
            (s.call.args[key] for key in ("content", "text", "data", "body") if isinstance(s.call.args.get(key), str)),
            None,
        )
        if content is not None:
            return Step(
                action=action,
                deed=WriteFile(path=target, content=content),
                expected=f"{target} is written",
                again=True,
                expects=made,
            )
        args = {key: target if key in PATH_KEYS and value == denied else value for key, value in s.call.args.items()}
        return s.again(action, args=args) if args != dict(s.call.args) else None
    words = s.call.words
    if words is not None and any(word == denied or word.endswith(f"={denied}") for word in words):
        return s.again(action, words=tuple(_swapped(word, denied, target) for word in words), expects=made)
    for spelled in (shlex.quote(denied), f'"{denied}"', denied):
        if spelled in s.call.line:
            return s.again(action, script=s.call.line.replace(spelled, shlex.quote(target)), expects=made)
    return None


def _swapped(word: str, denied: str, target: str) -> str:
    return target if word == denied else f"{word.partition('=')[0]}={target}" if word.endswith(f"={denied}") else word
