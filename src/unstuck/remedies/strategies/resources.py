"""Ways out of a full disk, a taken port, too little memory and too much output."""

import json
import re
import shlex

from unstuck.remedies import subject as reading
from unstuck.remedies.situation import Situation, promised
from unstuck.remedies.step import REMEDY, Expects, Recipe, Remove, Shell, Step, WriteFile
from unstuck.remedies.strategies.network import BACKOFF, BACKOFF_SECONDS, one_at_a_time

LOG = ".unstuck/remedy-output.log"
MOST_REMOVED = 50
TO_FILE = 'mkdir -p "$(dirname "$1")"; "${@:2}" >"$1" 2>&1; code=$?; wc -lc -- "$1"; exit $code'
ENDS = '"$@" 2>&1 | { head -c 8000; echo; echo "[...]"; tail -c 8000; }; exit "${PIPESTATUS[0]}"'
GZIP = 'test ! -d "$2" && : > "$2" && gzip -c -- "$1" > "$2.gz" && rm -f -- "$2"'
"""What the failed call left of its target takes the space that is missing."""
NODE_MEMORY = "--max-old-space-size=4096"


def clean_up_temp_files(s: Situation) -> Recipe | str:
    """Remove the largest things that are ours: exact paths, each inside the workspace."""
    if not s.around.ours:
        return "nothing in the workspace is ours to delete"
    paths = tuple(path for path, _ in s.around.ours[:MOST_REMOVED])
    size = sum(size for _, size in s.around.ours[:MOST_REMOVED])
    step = Step(
        action=f"Remove {len(paths)} caches and temporary files of ours, {size / 1e6:.1f} MB",
        deed=Remove(paths=paths),
        expected="They are gone",
        expects=Expects(gone=paths),
    )
    return Recipe(
        steps=(step, s.again("Call it again, now that there is space")) if s.is_command or s.call.tool else (step,)
    )


def write_smaller_file(s: Situation) -> Recipe | str:
    """Write less: the same document packed. A file under another name is not what was called for, so gzip is advice."""
    content, path = s.call.args.get("content"), reading.path(s)
    if not s.is_command and isinstance(content, str) and path:
        smaller = _packed(content)
        if smaller is None or len(smaller.encode()) >= len(content.encode()):
            return "it cannot be packed without losing something"
        if s.around.free_bytes is not None and len(smaller.encode()) > s.around.free_bytes:
            return f"it does not fit into the {max(0, s.around.free_bytes)} bytes that are left, however it is packed"
        return Recipe(
            steps=(
                Step(
                    action="Write it without blanks that nobody needs",
                    deed=WriteFile(path=path, content=smaller),
                    expected=f"{path} is written",
                    expects=Expects(exists=(path,)),
                    again=True,
                ),
            )
        )
    words = s.call.words
    if words and words[0] == "cp" and len(words) == 3 and not words[1].startswith("-"):  # noqa: PLR2004  # cp, source, target
        step = Step(
            action="Write it packed",
            deed=Shell(argv=("bash", "-c", GZIP, REMEDY, words[1], words[2])),
            expected=f"{words[2]}.gz exists",
            risk="caution",
            expects=Expects(exists=(f"{words[2]}.gz",)),
        )
        return Recipe(steps=(step,), requires=("gzip",))
    redirect = re.fullmatch(r"(?P<call>[^<>|&;`$]+?)>\s*(?P<file>[^\s<>|&;`$]+)", s.call.line.strip())
    if redirect and s.is_command:
        script = f"{redirect['call'].strip()} | gzip -9 > {redirect['file']}.gz"
        target = shlex.split(redirect["file"])[0]
        packed = s.again("Write it packed", script=script, expects=Expects(exists=(f"{target}.gz",)))
        return Recipe(steps=(packed._replace(again=False),), requires=("gzip",))
    return "nobody knows how to make it smaller"


def use_another_port(s: Situation) -> Recipe | str:
    """Listen on a port that is free."""
    taken, free = reading.port(s), s.around.free_port
    if free is None:
        return "no free port was found"
    if not s.is_command:
        key = next(
            (key for key, value in s.call.args.items() if "port" in key.lower() and str(value) == str(taken)), ""
        )
        if not key:
            return "the call names no port"
        value = free if isinstance(s.call.args[key], int) else str(free)
        return Recipe(steps=(s.again(f"Use port {free}, which is free", args={**s.call.args, key: value}),))
    words = s.call.words
    if words is not None and taken is not None:
        swapped = tuple(re.sub(rf"(?<!\d){taken}(?!\d)", str(free), word) for word in words)
        if swapped != words:
            return Recipe(steps=(s.again(f"Use port {free}, which is free", words=swapped),), requires=(words[0],))
    if taken is not None and re.search(rf"(?<!\d){taken}(?!\d)", s.call.line):
        return Recipe(
            steps=(
                s.again(
                    f"Use port {free}, which is free", script=re.sub(rf"(?<!\d){taken}(?!\d)", str(free), s.call.line)
                ),
            )
        )
    return Recipe(steps=(s.again(f"Use port {free}, which is free", env={"PORT": str(free)}),))


def wait_for_the_port(s: Situation) -> Recipe | str:
    """Wait for whoever has it to end."""
    return _patiently(s, "Try again after 1, 2, 4 and 8 seconds: who has the port may end")


def wait_for_the_lock(s: Situation) -> Recipe | str:
    """Wait for whoever holds the lock."""
    if s.around.lock is not None and s.around.lock.exists and not s.around.lock.held:
        return f"nobody holds {s.around.lock.path}, so waiting will not help"
    return _patiently(s, "Try again after 1, 2, 4 and 8 seconds: who holds the lock may end")


def reduce_parallelism(s: Situation) -> Recipe | str:
    """Do one thing at a time."""
    slower = one_at_a_time(s.call.words or ())
    if slower is not None:
        return Recipe(steps=(s.again("Call it again with one worker", words=slower),), requires=(slower[0],))
    key = next(
        (
            key
            for key in ("workers", "jobs", "parallel", "concurrency", "threads", "batch_size")
            if isinstance(s.call.args.get(key), int)
        ),
        "",
    )
    if key and s.call.args[key] > 1:
        return Recipe(steps=(s.again(f"Call it again with {key} 1", args={**s.call.args, key: 1}),))
    return "the call does not say how much it does at once"


def raise_memory_limit(s: Situation) -> Recipe | str:
    """Let Node use more memory; others set no limit of their own."""
    if "heap" not in s.text.lower() or not s.is_command:
        return "the program sets no limit of its own that could be raised"
    return Recipe(steps=(s.again("Call it again with 4 GB for Node", env={"NODE_OPTIONS": NODE_MEMORY}),))


def write_to_a_file(s: Situation) -> Recipe | str:
    """Put the output into a file, and read what is wanted of it."""
    words = s.call_words()
    if words is None:
        return "the call is not a command"
    step = Step(
        action=f"Run it with its output in {LOG}",
        deed=Shell(argv=("bash", "-c", TO_FILE, REMEDY, LOG, *words)),
        expected="The length of the output",
        risk=s.again("").risk,
        again=True,
        expects=Expects(exists=(LOG,)),
    )
    look = Step(
        action="Look at its beginning and end",
        deed=Shell(argv=("bash", "-c", 'head -n 20 -- "$1"; echo "[...]"; tail -n 20 -- "$1"', REMEDY, LOG)),
        expected="Forty lines",
    )
    return Recipe(steps=(step, look), requires=("bash",))


def show_the_ends(s: Situation) -> Recipe | str:
    """Show the first and the last of it."""
    words = s.call_words()
    if words is None:
        limits = [
            key for key in ("limit", "max_results", "max_chars", "head_limit") if isinstance(s.call.args.get(key), int)
        ]
        return Recipe(steps=(_less(s, limits[0]),)) if limits else "the call is not a command"
    step = Step(
        action="Show the first and the last 8000 bytes",
        deed=Shell(argv=("bash", "-c", ENDS, REMEDY, *words)),
        expected="Both ends",
        risk=s.again("").risk,
        again=True,
    )
    return Recipe(steps=(step,), requires=("bash",))


def _less(s: Situation, key: str) -> Step:
    """Ask for a part of it, which is not the call."""
    return s.again("Ask for less", args={**s.call.args, key: s.call.args[key] // 2})._replace(again=False)


def _patiently(s: Situation, action: str) -> Recipe | str:
    words = s.call_words()
    if words is None:
        return "the call is not a command"
    step = Step(
        action=action,
        deed=Shell(argv=("bash", "-c", BACKOFF, REMEDY, *words), timeout=s.preferences.timeout + BACKOFF_SECONDS),
        expected="One of the tries succeeds",
        expects=promised(words),
        risk=s.again("").risk,
        again=True,
    )
    return Recipe(steps=(step,), requires=("bash",))


def _packed(content: str) -> str | None:
    """Return a document without blanks that mean nothing; None where every blank may mean something."""
    try:
        return json.dumps(json.loads(content), separators=(",", ":"), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
