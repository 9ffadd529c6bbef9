"""Ways out of what there is too little of: time, memory, ports, room for output, or a server's patience."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from unstuck.remedies.call_words import Address, address, download_target, name_of, program, ssh_address
from unstuck.remedies.chain import (
    REMEDY,
    Expects,
    NoWay,
    ReadFile,
    Recipe,
    Step,
    fixed,
    listed,
    no_way,
    recipe,
    run,
    shape,
)
from unstuck.remedies.situation import LOG, LOOPBACK, Situation, port, starts, url

UNKNOWN_CALL = "nobody knows what was called"
ONLY_A_SHELL = "only a shell can tell what the call consists of"

# --- time ---------------------------------------------------------------------------------------------------------

CHUNK, MOST_CHUNKS, LEAST = 10, 8, 2
DEFAULT_SECONDS = 120.0


def reduce_scope(s: Situation) -> Recipe:
    """Process smaller chunks: of the real argument list, of the folder it names, or of a tool's list."""
    if not s.is_command:
        return _smaller_arguments(s)
    words = s.call.words or no_way(f"{ONLY_A_SHELL}, so nothing can be divided")
    if why := indivisible(s, words):
        no_way(why)
    before, operands, after = _divisible(s, words)
    if len(operands) < LEAST:
        no_way("nothing in the call can be divided")
    chunks = _chunks(operands)
    parts = [
        s.again(f"Do part {number} of {len(chunks)}", words=(*before, *chunk, *after), timeout=s.preferences.timeout)
        for number, chunk in enumerate(chunks, 1)
    ]
    return recipe(*parts, requires=words[:1])


def _chunks(things: Sequence[Any]) -> list[Sequence[Any]]:
    half, least = -(-len(things) // LEAST), -(-len(things) // MOST_CHUNKS)
    size = max(1, min(CHUNK, half), least)
    return [things[place : place + size] for place in range(0, len(things), size)]


def indivisible(s: Situation, words: tuple[str, ...]) -> str:
    """Say why the parts of a call may not add up to the whole; empty for tools that take file by file and write no common result."""
    table = s.table("additive")
    if starts(words).isdisjoint(table.get("calls", ())):
        return f"the parts of {program(words)} may not add up to the whole"
    common = next((word for word in words if re.fullmatch(shape("one_result"), word.partition("=")[0])), "")
    return f"{common} makes one result of all parts" if common else ""


def _divisible(s: Situation, words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Split the words around what can be divided: the trailing files and folders, or what the only folder holds."""
    last = len(words)
    while last > 1 and _is_operand(s, words[last - 1]):
        last -= 1
    if len(words) - last >= LEAST:
        return words[:last], words[last:], ()
    picks = [pattern for call, pattern in s.table("additive")["picks"].items() if call in starts(words)]
    changes = any(word in {"-a", "-A"} or word.startswith(("--fix", "--auto", "--write")) for word in words)
    folders = [(place, word) for place, word in enumerate(words) if place and word in s.around.folders]
    for place, folder in folders[-1:] if picks and not changes else ():
        held = tuple(
            one for one in s.around.folders[folder] if one.endswith("/") or re.fullmatch(picks[0], name_of(one))
        )
        return words[:place], held, words[place + 1 :]
    return words, (), ()


def _is_operand(s: Situation, word: str) -> bool:
    if s.around.files or s.around.folders:
        return word in s.around.files or word in s.around.folders
    return not word.startswith("-") and "." in word and "/" not in word[:1]


def _smaller_arguments(s: Situation) -> Recipe:
    """Divide the longest list of a tool's arguments, or halve the amount that it names."""
    args = s.call.args
    lists = [
        (len(value), key) for key, value in args.items() if isinstance(value, Sequence) and not isinstance(value, str)
    ]
    named = set(re.findall(r"[a-z]+", f"{s.call.tool} {' '.join(args)}".lower()))
    whole = sorted(named.intersection(s.table("additive").get("whole", ())))
    if lists and whole:
        no_way(f"the parts of {s.call.tool} may not add up to the whole ({whole[0]})")
    length, key = max(lists, default=(0, ""))
    if length >= LEAST:
        chunks = _chunks(args[key])
        parts = [
            s.again(f"Do part {number} of {len(chunks)}", args={**args, key: list(chunk)})
            for number, chunk in enumerate(chunks, 1)
        ]
        return recipe(*parts)
    key = _numbered(s, "amount_keys", LEAST) or no_way("nothing in the call can be divided")
    return recipe(_half(s, f"Ask for half of it: {key} {args[key] // 2}", key))


def _numbered(s: Situation, name: str, least: float) -> str:
    """Return the first argument of this list that is a number, and large enough."""
    numbers = {
        key: value
        for key, value in s.call.args.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return next((key for key in listed(name) if key in numbers and numbers[key] >= least), "")


def _half(s: Situation, action: str, key: str) -> Step:
    """Ask for half of an amount, which is advice: half an answer is not the call."""
    return s.again(action, args={**s.call.args, key: s.call.args[key] // 2})._replace(again=False)


def increase_timeout(s: Situation) -> Recipe:
    """Call it with twice the time."""
    key = _numbered(s, "limit_keys", 1e-9)
    if key and not s.is_command:
        twice = s.call.args[key] * 2
        return recipe(s.again(f"Call it again with {key} {twice}", args={**s.call.args, key: twice}))
    if key:
        seconds = s.call.args[key] * 2 / (1000 if key.endswith(("ms", "Ms")) else 1)
        return recipe(s.again(f"Call it again with {seconds:g} seconds", timeout=seconds))
    if s.call.words and (longer := _longer(s.call.words)):
        limit = 4 * s.preferences.timeout
        return recipe(s.again("Call it again with twice its own limit", words=longer, timeout=limit))
    if not s.is_command:
        no_way("the tool has no argument for its time")
    return recipe(s.again("Call it again with more time", timeout=2 * DEFAULT_SECONDS))


def _longer(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the words with their own time limit doubled."""
    timeout = program(words) in {"timeout", "gtimeout"}
    for place, word in enumerate(words[1:], 1):
        name, equals, value = word.partition("=")
        if timeout or words[place - 1] in listed("limit_options"):
            name, equals, value = "", "", word
        elif name not in listed("limit_options"):
            continue
        if found := re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", value):
            return (*words[:place], f"{name}{equals}{float(found[1]) * 2:g}{found[2]}", *words[place + 1 :])
    return None


def stream_results(s: Situation) -> Recipe:
    """Keep what it prints while it runs."""
    action = "Run it with its output in a file, so that what is done is kept"
    look = Step("Read what it printed", ReadFile(LOG), "The output so far")
    call = s.wrapped(action, fixed("tee"), LOG, timeout=s.preferences.timeout)
    return recipe(call, look, requires=("bash", "tee"))


# --- memory, ports and room for output ----------------------------------------------------------------------------

BACKOFF_SECONDS = 20.0


def use_another_port(s: Situation) -> Recipe:
    """Listen on a port that is free."""
    taken, free = port(s), s.around.free_port
    if free is None:
        no_way("no free port was found")
    action, number = f"Use port {free}, which is free", rf"(?<!\d){taken}(?!\d)"
    if not s.is_command:
        ports = [key for key, value in s.call.args.items() if "port" in key.lower() and str(value) == str(taken)]
        key = next(iter(ports), "") or no_way("the call names no port")
        value = free if isinstance(s.call.args[key], int) else str(free)
        return recipe(s.again(action, args={**s.call.args, key: value}))

    def other(text: str) -> str:
        return re.sub(number, str(free), text)

    if step := s.changed(action, other, other):
        return recipe(s.served(action, free, step), requires=(s.call.words or ())[:1])
    return recipe(s.served(action, free, s.again(action, env={"PORT": str(free)})))


def wait_for_the_port(s: Situation) -> Recipe:
    """Wait until who has the port ends, and make the call then."""
    taken = port(s) or no_way("nobody says which port is taken")
    wait = run(f"Wait until nobody listens on port {taken}", "bash", "-c", fixed("port_free"), REMEDY, str(taken), timeout=BACKOFF_SECONDS,
               expected="The port is free")  # fmt: skip
    return recipe(wait, s.served("Call it again, now that the port is free", taken), requires=("bash",))


def _patiently(s: Situation, action: str) -> Recipe:
    seconds = s.preferences.timeout + BACKOFF_SECONDS
    step = s.wrapped(action, fixed("backoff"), expected="One of the tries succeeds", timeout=seconds)
    return recipe(step, requires=("bash",))


def reduce_parallelism(s: Situation) -> Recipe:
    """Do one thing at a time."""
    if slower := one_at_a_time(s.call.words or ()):
        return recipe(s.again("Call it again with one worker", words=slower), requires=slower[:1])
    key = _numbered(s, "worker_keys", LEAST) or no_way("the call does not say how much it does at once")
    return recipe(s.again(f"Call it again with {key} 1", args={**s.call.args, key: 1}))


def show_the_ends(s: Situation) -> Recipe:
    """Show the first and the last of it."""
    key = "" if s.is_command else _numbered(s, "output_keys", 0)
    if key:
        return recipe(_half(s, "Ask for less", key))
    return recipe(
        s.wrapped("Show the first and the last 8000 bytes", fixed("ends"), expected="Both ends"), requires=("bash",)
    )


# --- servers ------------------------------------------------------------------------------------------------------

ARCHIVE = "web.archive.org"
UNSTATED = 60.0
"""Waited where a server says that it is too much, and not until when."""


def retry_with_backoff(s: Situation) -> Recipe:
    """Wait and try again, a little longer each time."""
    if re.search(shape("lasting"), s.text):
        no_way("a certificate is not trusted more a little later")
    if s.is_command:
        return _patiently(s, "Try again after 1, 2, 4 and 8 seconds")
    if not s.call.tool:
        no_way(UNKNOWN_CALL)
    return recipe(_pause(15.0), s.again("Call it again after the pause"))


def wait_and_retry(s: Situation) -> Recipe:
    """Wait until the limit ends, as the server says, then call it again."""
    seconds, longest = UNSTATED if s.reset is None else max(1.0, s.reset + 1), s.preferences.longest_wait
    if seconds > longest:
        no_way(f"the limit ends in {seconds / 60:.0f} minutes, and `longest_wait` is {longest / 60:.0f}")
    if not s.call.tool and not s.is_command:
        no_way(UNKNOWN_CALL)
    said = "as the server says" if s.reset is not None else "since the server does not say until when"
    return recipe(_pause(seconds, f", {said}"), s.again("Call it again, now that the limit has ended"))


def _pause(seconds: float, why: str = "") -> Step:
    action, expected = f"Wait {seconds:.0f} seconds{why}", "The time has passed"
    return run(action, "sleep", f"{seconds:.0f}", timeout=seconds + 10, expected=expected)


def reduce_request_frequency(s: Situation) -> Recipe:
    """Ask for one thing at a time, with pauses."""
    nothing = "the call has nothing that could be slowed down"
    if not s.is_command:
        key = _numbered(s, "parallel_keys", LEAST) or no_way(nothing)
        return recipe(_pause(5.0), s.again(f"Call it again with {key} 1", args={**s.call.args, key: 1}))
    words = s.call.words or no_way(ONLY_A_SHELL)
    addresses = [word for word in words if address(word)]
    if len(addresses) > 1 and not set(words).intersection(listed("to_file")):
        head = tuple(word for word in words if word not in addresses)
        single = [s.again(f"Fetch {source} by itself", words=(*head, source)) for source in addresses]
        return recipe(*(step for one in single for step in (_pause(2.0), one)), requires=words[:1])
    if slower := one_at_a_time(words):
        return recipe(_pause(5.0), s.again("Call it again, one request at a time", words=slower))
    if words[0] == "curl" and not any(word.startswith("--retry") for word in words):
        slow = ("curl", "--retry", "5", "--retry-delay", "2", "--retry-all-errors", *words[1:])
        step = s.again("Let curl space its requests", words=slow, timeout=s.preferences.timeout)
        return recipe(step, requires=("curl",))
    return no_way(nothing)


def one_at_a_time(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the words with their degree of parallelism set to one."""
    changed = list(words)
    for place, word in enumerate(words[1:], 1):
        name, equals, value = word.partition("=")
        if name in listed("parallel_options") and equals and (value.isdigit() or value == "auto"):
            changed[place] = f"{name}=1"
        elif words[place - 1] in listed("parallel_options") and place > 1 and (word.isdigit() or word == "auto"):
            changed[place] = "1"
        elif word[:2] in {"-j", "-P", "-n"} and word[2:].isdigit():
            changed[place] = f"{word[:2]}1"
    return tuple(changed) if tuple(changed) != words else None


def try_alternative_host_url(s: Situation) -> Recipe:
    """Use a mirror."""
    found = url(s) or no_way("the call names no address")
    known = s.preferences.mirrors.get(found.place) or s.preferences.mirrors.get(found.host)
    others = ([known] if known else []) + list(s.table("mirrors").get(found.host, ()))
    refused = [other for other in others if not s.preferences.may_reach(other)]
    usable = [other for other in others if other not in refused]
    if not usable and not refused and (copy := _archived(s, found)) is not None:
        return copy
    if not usable:
        no_way(f"{refused[0]} is not among the allowed hosts" if refused else f"no mirror of {found.place} is known")
    other = usable[0]
    old, new = found.place, f"{other}{'' if other.rsplit(':', 1)[-1].isdigit() else found.port}"
    step = s.changed(
        f"Ask {new} instead",
        lambda word: word.replace(old, new, 1) if address(word) else word,
        lambda line: line.replace(old, new),
    )
    if step is None:
        no_way(f"the address is {'not part of the call' if s.is_command else 'none of the arguments'}")
    return recipe(step, requires=(s.call.words or ())[:1] if s.is_command else (), hosts=(new,))


def _archived(s: Situation, found: Address) -> Recipe | None:
    """Return the download of a public page from where copies of it are kept."""
    fetches = not s.is_command or (s.call.words or ("",))[0] in {"curl", "wget"}
    public = "." in found.host and not found.host.rsplit(".", 1)[-1].isdigit() and not found.port
    if not fetches or not public or not s.preferences.may_reach(ARCHIVE):
        return None
    parts = found.path.split("/")
    raw = found.host == "github.com" and parts[3:4] == ["raw"]
    there = f"raw.githubusercontent.com/{'/'.join(parts[1:3] + parts[4:])}" if raw else f"{ARCHIVE}/web/{found.text}"
    other = f"https://{there}"
    step = s.changed(
        f"Ask for the copy at {other}", lambda word: other if word == found.text else word, lambda line: line
    )
    if step is None:
        return None
    told = step._replace(risk="caution")  # it tells somebody else which address was asked for
    return recipe(told, hosts=(other.split("/")[2],))


def use_cached_data(s: Situation) -> Recipe:
    """Use what was downloaded before."""
    words = s.call.words or ()
    option = next((option for option, calls in s.table("offline").items() if " ".join(words[:2]) in calls), "")
    if option and option not in words:
        return recipe(s.again("Install from what was fetched before", words=(*words, option)), requires=words[:1])
    copy = next(iter(s.around.cached), "") or no_way("nothing of that name was downloaded before")
    target = download_target(words)
    if target and target != copy:
        step = run(f"Take {copy}, which was downloaded before", "cp", "--", copy, target, expected=f"{target} exists",
                   expects=Expects(exists=(target,), sound=(target,)), again=True)  # fmt: skip
        return recipe(step, requires=("cp",))
    action, sound = f"Read {copy}, which was downloaded before", Expects(sound=(copy,))
    return recipe(Step(action, ReadFile(copy), "The data", expects=sound, again=True))


def use_alternative_api_source(s: Situation) -> Recipe:
    """Switch to a mirror, or to data that is here already."""
    with suppress(NoWay):
        mirror, found = try_alternative_host_url(s), url(s)
        named = found is not None and {found.place, found.host}.intersection(s.preferences.mirrors)
        if named or not (mirror.hosts and {mirror.hosts[0], mirror.hosts[0].rsplit(":", 1)[0]} & LOOPBACK):
            return mirror
    with suppress(NoWay):
        return use_cached_data(s)
    return no_way("no other source and nothing downloaded before is known")


def use_anonymous_access(s: Situation) -> Recipe:
    """Read what is public without credentials."""
    words = s.call.words or ()
    if words[:2] not in {("git", "clone"), ("git", "fetch"), ("git", "ls-remote")}:
        no_way("only public repositories can be read without credentials")
    found = next(filter(None, map(ssh_address, words)), None)
    if found is None:
        no_way("the address asks for no key that could be left out")
    public = tuple(found.text if ssh_address(word) == found else word for word in words)
    action, silent = "Read it over https, which needs no key where it is public", {"GIT_TERMINAL_PROMPT": "0"}
    return recipe(s.again(action, words=public, env=silent), requires=("git",), hosts=(found.place,))
