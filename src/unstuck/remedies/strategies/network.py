"""Ways out of trouble with a server: later, less often, elsewhere, or with what is here already."""

from unstuck.remedies import subject as reading
from unstuck.remedies.call_words import TO_FILE, Address, address, download_target, ssh_address
from unstuck.remedies.situation import Situation, promised
from unstuck.remedies.step import REMEDY, Expects, ReadFile, Recipe, Shell, Step

BACKOFF = 'for pause in 1 2 4 8; do sleep "$pause.$((RANDOM % 10))"; "$@" && exit 0; done; exit 1'
"""One strategy with tries of its own: 1, 2, 4 and 8 seconds, each with up to a second more."""
BACKOFF_SECONDS = 20.0
ARCHIVE = "web.archive.org"
UNSTATED = 60.0
"""Waited where a server says that it is too much, and not until when."""
PARALLEL_KEYS = (
    "concurrency",
    "parallel",
    "workers",
    "max_workers",
    "threads",
    "jobs",
    "batch_size",
    "requests_per_second",
)
PARALLEL_OPTIONS = ("-P", "--max-procs", "-j", "--jobs", "--parallel", "--concurrency", "-c", "--workers", "-n")
OFFLINE = {
    "npm install": ("--prefer-offline",),
    "npm ci": ("--prefer-offline",),
    "yarn install": ("--offline",),
    "pnpm install": ("--offline",),
    "cargo build": ("--offline",),
    "cargo fetch": ("--offline",),
    "cargo test": ("--offline",),
    "cargo check": ("--offline",),
    "uv sync": ("--offline",),
    "uv pip": ("--offline",),
    "mvn package": ("--offline",),
    "mvn test": ("--offline",),
}
"""Installers that can do with what they fetched before."""


def retry_with_backoff(s: Situation) -> Recipe | str:
    """Wait and try again, a little longer each time."""
    words = s.call_words()
    if words is None:
        if not s.call.tool:
            return "nobody knows what was called"
        return Recipe(steps=(_pause(15.0), s.again("Call it again after the pause")))
    risk = s.again("").risk
    step = Step(
        action="Try again after 1, 2, 4 and 8 seconds",
        deed=Shell(argv=("bash", "-c", BACKOFF, REMEDY, *words), timeout=s.preferences.timeout + BACKOFF_SECONDS),
        expected="One of the tries succeeds",
        expects=promised(words),
        risk=risk,
        again=True,
    )
    return Recipe(steps=(step,), requires=("bash",))


def wait_and_retry(s: Situation) -> Recipe | str:
    """Wait until the limit ends, as the server says, then call it again."""
    seconds = UNSTATED if s.reset is None else max(1.0, s.reset + 1)
    if seconds > s.preferences.longest_wait:
        return (
            f"the limit ends in {seconds / 60:.0f} minutes, and `longest_wait` is {s.preferences.longest_wait / 60:.0f}"
        )
    if not s.call.tool and not s.is_command:
        return "nobody knows what was called"
    said = "as the server says" if s.reset is not None else "since the server does not say until when"
    pause = _pause(seconds)._replace(action=f"Wait {seconds:.0f} seconds, {said}")
    return Recipe(steps=(pause, s.again("Call it again, now that the limit has ended")))


def reduce_request_frequency(s: Situation) -> Recipe | str:
    """Ask for one thing at a time, with pauses."""
    if not s.is_command:
        key = next((key for key in PARALLEL_KEYS if isinstance(s.call.args.get(key), int) and s.call.args[key] > 1), "")
        if key:
            return Recipe(steps=(_pause(5.0), s.again(f"Call it again with {key} 1", args={**s.call.args, key: 1})))
        return "the call has nothing that could be slowed down"
    words = s.call.words
    if words is None:
        return "only a shell can tell what the call consists of"
    addresses = [word for word in words if address(word)]
    if len(addresses) > 1 and not set(TO_FILE).intersection(words):
        head = tuple(word for word in words if word not in addresses)
        steps = [
            step
            for source in addresses
            for step in (_pause(2.0), s.again(f"Fetch {source} by itself", words=(*head, source)))
        ]
        return Recipe(steps=tuple(steps), requires=(words[0],))
    slower = one_at_a_time(words)
    if slower is not None:
        return Recipe(steps=(_pause(5.0), s.again("Call it again, one request at a time", words=slower)))
    if words[0] == "curl" and not any(word.startswith("--retry") for word in words):
        slow = ("curl", "--retry", "5", "--retry-delay", "2", "--retry-all-errors", *words[1:])
        return Recipe(
            steps=(s.again("Let curl space its requests", words=slow, timeout=s.preferences.timeout),),
            requires=("curl",),
        )
    return "the call has nothing that could be slowed down"


def try_alternative_host_url(s: Situation) -> Recipe | str:
    """Use a mirror."""
    found = reading.url(s)
    if found is None:
        return "the call names no address"
    known = s.preferences.mirrors.get(found.place) or s.preferences.mirrors.get(found.host)
    others = ([known] if known else []) + list(s.table("mirrors").get(found.host, ()))
    refused = [other for other in others if not s.preferences.may_reach(other)]
    usable = [other for other in others if other not in refused and other not in s.around.unreachable]
    if not usable and not refused and (copy := _archived(s, found)) is not None:
        return copy
    if not usable:
        return f"{refused[0]} is not among the allowed hosts" if refused else f"no mirror of {found.place} is known"
    return _elsewhere(s, found, usable[0])


def use_cached_data(s: Situation) -> Recipe | str:
    """Use what was downloaded before."""
    words = s.call.words
    offline = OFFLINE.get(" ".join(words[:2])) if words else None
    if words and offline and not set(offline).intersection(words):
        return Recipe(
            steps=(s.again("Install from what was fetched before", words=(*words, *offline)),), requires=(words[0],)
        )
    if not s.around.cached:
        return "nothing of that name was downloaded before"
    copy = s.around.cached[0]
    target = download_target(words)
    if target and target != copy:
        step = Step(
            action=f"Take {copy}, which was downloaded before",
            deed=Shell(argv=("cp", "--", copy, target)),
            expected=f"{target} exists",
            expects=Expects(exists=(target,), sound=(target,)),
            again=True,
        )
        return Recipe(steps=(step,), requires=("cp",))
    return Recipe(
        steps=(
            Step(
                action=f"Read {copy}, which was downloaded before",
                deed=ReadFile(path=copy),
                expected="The data",
                expects=Expects(sound=(copy,)),
                again=True,
            ),
        )
    )


def use_alternative_api_source(s: Situation) -> Recipe | str:
    """Switch to a mirror, or to data that is here already."""
    mirror = try_alternative_host_url(s)
    if isinstance(mirror, Recipe) and not reading.is_loopback(mirror.hosts[0] if mirror.hosts else ""):
        return mirror
    known = s.preferences.mirrors
    found = reading.url(s)
    if isinstance(mirror, Recipe) and found and (found.place in known or found.host in known):
        return mirror
    cached = use_cached_data(s)
    return cached if isinstance(cached, Recipe) else "no other source and nothing downloaded before is known"


def use_anonymous_access(s: Situation) -> Recipe | str:
    """Read what is public without credentials."""
    words = s.call.words
    if words is None or words[:2] not in {("git", "clone"), ("git", "fetch"), ("git", "ls-remote")}:
        return "only public repositories can be read without credentials"
    found = next(((word, ssh_address(word)) for word in words if ssh_address(word)), None)
    if found is None or found[1] is None:
        return "the address asks for no key that could be left out"
    public = tuple(found[1].text if word == found[0] else word for word in words)
    step = s.again(
        "Read it over https, which needs no key where it is public", words=public, env={"GIT_TERMINAL_PROMPT": "0"}
    )
    return Recipe(steps=(step,), requires=("git",), hosts=(found[1].place,))


def one_at_a_time(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the words with their degree of parallelism set to one."""
    changed = list(words)
    for place, word in enumerate(words[1:], 1):
        name, equals, value = word.partition("=")
        if name in PARALLEL_OPTIONS and equals and (value.isdigit() or value == "auto"):
            changed[place] = f"{name}=1"
        elif (
            word in PARALLEL_OPTIONS
            and place + 1 < len(words)
            and (words[place + 1].isdigit() or words[place + 1] == "auto")
        ):
            changed[place + 1] = "1"
        elif word[:2] in {"-j", "-P", "-n"} and word[2:].isdigit():
            changed[place] = f"{word[:2]}1"
    return tuple(changed) if tuple(changed) != words else None


def _pause(seconds: float) -> Step:
    return Step(
        action=f"Wait {seconds:.0f} seconds",
        deed=Shell(argv=("sleep", f"{seconds:.0f}"), timeout=seconds + 10),
        expected="The time has passed",
    )


def _elsewhere(s: Situation, found: Address, other: str) -> Recipe | str:
    """Put another host in the place of the one that fails."""
    port = "" if other.rsplit(":", 1)[-1].isdigit() else found.port
    old, new = f"{found.host}{found.port}", f"{other}{port}"
    action = f"Ask {new} instead"
    if not s.is_command:
        args = {
            key: value.replace(old, new, 1) if isinstance(value, str) and address(value) else value
            for key, value in s.call.args.items()
        }
        return (
            Recipe(steps=(s.again(action, args=args),), hosts=(new,))
            if args != dict(s.call.args)
            else "the address is none of the arguments"
        )
    words = s.call.words
    if words is not None:
        swapped = tuple(word.replace(old, new, 1) if address(word) else word for word in words)
        return Recipe(steps=(s.again(action, words=swapped),), requires=(words[0],), hosts=(new,))
    if s.call.line.count(old) == 0:
        return "the address is not part of the call"
    return Recipe(steps=(s.again(action, script=s.call.line.replace(old, new)),), hosts=(new,))


def _archived(s: Situation, found: Address) -> Recipe | None:
    """Return the download of a public page from where copies of it are kept."""
    fetches = not s.is_command or (s.call.words or ("",))[0] in {"curl", "wget"}
    public = "." in found.host and not found.host.rsplit(".", 1)[-1].isdigit() and not found.port
    if not fetches or not public or not s.preferences.may_reach(ARCHIVE):
        return None
    parts = found.path.split("/")
    raw = found.host == "github.com" and parts[3:4] == ["raw"]
    other = (
        f"https://raw.githubusercontent.com/{'/'.join(parts[1:3] + parts[4:])}"
        if raw
        else f"https://{ARCHIVE}/web/{found.text}"
    )
    action = f"Ask for the copy at {other}"
    if s.is_command:
        words = tuple(other if address(word) == found else word for word in s.call.words or ())
        swapped = words != s.call.words
        return Recipe(steps=(s.again(action, words=words),), hosts=(other.split("/")[2],)) if swapped else None
    args = {key: other if value == found.text else value for key, value in s.call.args.items()}
    return (
        Recipe(steps=(s.again(action, args=args),), hosts=(other.split("/")[2],)) if args != dict(s.call.args) else None
    )
