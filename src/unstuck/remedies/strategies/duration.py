"""Ways out of a call that takes too long: less at once, more time, a stream, the background."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from unstuck.remedies.call_words import program
from unstuck.remedies.situation import Situation
from unstuck.remedies.step import REMEDY, Expects, ReadFile, Recipe, Shell, Step

CHUNK, MOST_CHUNKS, LEAST = 10, 8, 2
DEFAULT_MS = 120_000
LIMIT_KEYS = ("timeout_ms", "timeoutMs", "timeout", "timeout_seconds", "max_time", "deadline")
AMOUNT_KEYS = ("limit", "max", "max_results", "count", "depth", "page_size", "batch_size", "n", "size")
LIMIT_OPTIONS = ("-m", "--max-time", "--connect-timeout", "--timeout", "-T", "--time-limit", "-w")
LOG = ".unstuck/remedy-output.log"
TEE = 'set -o pipefail; mkdir -p "$(dirname "$1")"; "${@:2}" </dev/null 2>&1 | tee -- "$1"'
XARGS = 'find "$1" -type f -not -path "*/.git/*" -print0 | xargs -0 -n 10 -- "${@:2}"'
START = 'mkdir -p "$(dirname "$1")"; rm -f -- "$1.exit"; "${@:2}" </dev/null >"$1" 2>&1; echo $? >"$1.exit"'
LAUNCH = f"nohup bash -c '{START}' remedy \"$@\" >/dev/null 2>&1 &"
POLL = 'for _ in $(seq 1 "$2"); do test -s "$1.exit" && exit "$(cat "$1.exit")"; sleep 1; done; exit 124'
QUIET = {"CI": "1", "DEBIAN_FRONTEND": "noninteractive", "GIT_TERMINAL_PROMPT": "0", "PAGER": "cat", "GIT_PAGER": "cat"}


def reduce_scope(s: Situation) -> Recipe | str:
    """Process smaller chunks: of the real argument list, of the folder it names, or of a tool's list."""
    if not s.is_command:
        return _smaller_arguments(s)
    words = s.call.words
    if words is None:
        return "only a shell can tell what the call consists of, so nothing can be divided"
    if why := indivisible(s, words):
        return why
    before, operands, after = _divisible(s, words)
    if len(operands) < LEAST:
        return "nothing in the call can be divided"
    size = max(1, min(CHUNK, -(-len(operands) // LEAST)), -(-len(operands) // MOST_CHUNKS))
    chunks = [operands[place : place + size] for place in range(0, len(operands), size)]
    steps = tuple(
        s.again(f"Do part {number} of {len(chunks)}", words=(*before, *chunk, *after), timeout=s.preferences.timeout)
        for number, chunk in enumerate(chunks, 1)
    )
    return Recipe(steps=steps, requires=(words[0],))


def indivisible(s: Situation, words: tuple[str, ...]) -> str:
    """Say why the parts of a call may not add up to the whole; empty for tools that take file by file and write no common result."""
    table = s.table("additive")
    starts = {program(words), " ".join((program(words), *words[1:2])), " ".join((program(words), *words[1:3]))}
    if starts.isdisjoint(table.get("calls", ())):
        return f"the parts of {program(words)} may not add up to the whole"
    common = next((word for word in words if word.partition("=")[0] in table.get("unless", ())), "")
    return f"{common} makes one result of all parts" if common else ""


def increase_timeout(s: Situation) -> Recipe | str:
    """Call it with twice the time."""
    for key in LIMIT_KEYS:
        value = s.call.args.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            args = {**s.call.args, key: value * 2}
            if not s.is_command:
                return Recipe(steps=(s.again(f"Call it again with {key} {value * 2}", args=args),))
            seconds = value * 2 / (1000 if key.endswith(("ms", "Ms")) else 1)
            return Recipe(steps=(s.again(f"Call it again with {seconds:g} seconds", timeout=seconds),))
    words = s.call.words
    if words is not None and (longer := _longer(words)) is not None:
        return Recipe(
            steps=(s.again("Call it again with twice its own limit", words=longer, timeout=4 * s.preferences.timeout),)
        )
    if not s.is_command:
        return "the tool has no argument for its time"
    return Recipe(
        steps=(
            s.again("Call it again with more time, and nobody to wait for", timeout=2 * DEFAULT_MS / 1000, env=QUIET),
        )
    )


def stream_results(s: Situation) -> Recipe | str:
    """Process one thing after the other, and keep what is done."""
    words = s.call_words()
    if words is None:
        return "the call is not a command"
    place = _folder(s, words) if s.call.words and not indivisible(s, words) else 0
    if place:
        rest = (*words[:place], *words[place + 1 :])
        argv = ("bash", "-c", XARGS, REMEDY, words[place], *rest)
        step = _run(s, "Give it ten files at a time", argv, rest)
        return Recipe(steps=(step,), requires=("bash", "find", "xargs"))
    step = _run(
        s,
        "Run it with its output in a file, so that what is done is kept",
        ("bash", "-c", TEE, REMEDY, LOG, *words),
        words,
    )
    look = Step(action="Read what it printed", deed=ReadFile(path=LOG), expected="The output so far")
    return Recipe(steps=(step, look), requires=("bash", "tee"))


def background_execution(s: Situation) -> Recipe | str:
    """Run it in the background and poll for its end."""
    words = s.call_words()
    if words is None:
        return "the call is not a command"
    seconds = str(max(1, round(s.preferences.timeout) - 1))
    start = Step(
        action="Start it in the background",
        deed=Shell(argv=("bash", "-c", LAUNCH, REMEDY, LOG, *words), detached=True),
        expected="It goes on by itself",
        risk="safe" if s.repeatable(words) else "caution",
        again=True,
    )
    poll = Step(
        action="Wait for its end",
        deed=Shell(argv=("bash", "-c", POLL, REMEDY, LOG, seconds), timeout=s.preferences.timeout + 5),
        expected="It ends with exit code 0",
        again=True,
    )
    return Recipe(
        steps=(start, poll, Step(action="Read what it printed", deed=ReadFile(path=LOG), expected="The output")),
        requires=("bash", "nohup"),
    )


def close_input(s: Situation) -> Recipe | str:
    """Call it with nobody to answer: no input, no prompts, no pager."""
    if not s.is_command:
        return "the call is not a command"
    words = s.call_words()
    assert words is not None
    step = Step(
        action="Call it without input, prompts or pager",
        deed=Shell(argv=("bash", "-c", '"$@" </dev/null', REMEDY, *words), env=QUIET),
        expected="It ends with exit code 0",
        risk=s.again("").risk,
        again=True,
    )
    return Recipe(steps=(step,), requires=("bash",))


def _run(s: Situation, action: str, argv: tuple[str, ...], original: tuple[str, ...]) -> Step:
    """Return a fixed script around the call's own words, which is as harmless as they are."""
    risk: Any = "safe" if s.repeatable(original) else "caution"
    return Step(
        action=action,
        deed=Shell(argv=argv, timeout=s.preferences.timeout),
        expected="It ends with exit code 0",
        risk=risk,
        again=True,
        expects=Expects(),
    )


def _divisible(s: Situation, words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Split the words around what can be divided: the trailing files, or what the folder that is named holds."""
    last = len(words)
    while last > 1 and _is_file(s, words[last - 1]):
        last -= 1
    if len(words) - last >= LEAST:
        return words[:last], words[last:], ()
    place = _folder(s, words)
    return (words[:place], s.around.folders[words[place]], words[place + 1 :]) if place else (words, (), ())


def _is_file(s: Situation, word: str) -> bool:
    return (
        word in s.around.files if s.around.files else not word.startswith("-") and "." in word and "/" not in word[:1]
    )


def _folder(s: Situation, words: tuple[str, ...]) -> int:
    """Return where in the words a folder stands that holds several things; 0 if none does."""
    found = [place for place, word in enumerate(words) if place and len(s.around.folders.get(word, ())) >= LEAST]
    return found[-1] if found else 0


def _longer(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the words with their own time limit doubled."""
    changed = list(words)
    if words[0].rsplit("/", 1)[-1] in {"timeout", "gtimeout"}:
        for place, word in enumerate(words[1:], 1):
            if found := re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", word):
                changed[place] = f"{float(found[1]) * 2:g}{found[2]}"
                return tuple(changed)
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in LIMIT_OPTIONS and equals and value.replace(".", "", 1).isdigit():
            changed[place] = f"{name}={float(value) * 2:g}"
            return tuple(changed)
        if word in LIMIT_OPTIONS and place + 1 < len(words) and words[place + 1].replace(".", "", 1).isdigit():
            changed[place + 1] = f"{float(words[place + 1]) * 2:g}"
            return tuple(changed)
    return None


def _smaller_arguments(s: Situation) -> Recipe | str:
    """Divide the longest list of a tool's arguments, or halve the amount that it names."""
    args: Mapping[str, Any] = s.call.args
    lists = [
        (len(value), key) for key, value in args.items() if isinstance(value, Sequence) and not isinstance(value, str)
    ]
    named = set(re.findall(r"[a-z]+", f"{s.call.tool} {' '.join(args)}".lower()))
    whole = sorted(named.intersection(s.table("additive").get("whole", ())))
    if lists and whole:
        return f"the parts of {s.call.tool} may not add up to the whole ({whole[0]})"
    if lists and max(lists)[0] >= LEAST:
        length, key = max(lists)
        size = max(1, min(CHUNK, length // LEAST), -(-length // MOST_CHUNKS))
        chunks = [list(args[key][place : place + size]) for place in range(0, length, size)]
        return Recipe(
            steps=tuple(
                s.again(f"Do part {number} of {len(chunks)}", args={**args, key: chunk})
                for number, chunk in enumerate(chunks, 1)
            )
        )
    for key in AMOUNT_KEYS:
        value = args.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= LEAST:
            half = s.again(f"Ask for half of it: {key} {value // 2}", args={**args, key: value // 2})
            return Recipe(steps=(half._replace(again=False),))  # half an answer is not the call
    return "nothing in the call can be divided"
