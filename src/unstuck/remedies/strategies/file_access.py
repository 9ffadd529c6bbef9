"""Ways out of what is wrong on disk: a missing or denied path, no space, a lock, a half-done operation of git."""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile

from unstuck.remedies.call_words import alike, destroys, name_of, operand, plain_words, program
from unstuck.remedies.chain import (
    REMEDY,
    Expects,
    ListFolder,
    MakeFolder,
    Recipe,
    Remove,
    Shell,
    Step,
    WriteFile,
    fixed,
    listed,
    no_way,
    recipe,
    run,
    shape,
)
from unstuck.remedies.situation import Situation, path
from unstuck.remedies.surroundings import Place
from unstuck.toolchain.shell import parts

EMPTY = {"json": "{}\n", "html": "<!doctype html>\n", "xml": '<?xml version="1.0"?>\n<root/>\n'}
GLOB_CHARS = str.maketrans({char: f"\\{char}" for char in "*?[]\\"})
NO_PATH = "the failure names no path"


def verify_path(s: Situation) -> Recipe:
    """Look for the file under another spelling, ending or place."""
    if known := s.known_repair():
        return recipe(known, likelihood=GUESSED)
    wanted = path(s) or no_way(NO_PATH)
    place = s.around.place
    if place and place.exists:
        no_way(f"{wanted} is there")
    parent = place.parent if place else parent_of(wanted)
    if place and (spaced := _spaced(s, wanted, place.names)):
        return recipe(s.again(f"Call it again with the name in one piece: {spaced[0]}", words=spaced[1]))
    listing = Step(f"List {parent}, where {name_of(wanted)} should be", ListFolder(parent), "A listing of the folder")
    here = wanted.removeprefix(f"{s.around.cwd}/")
    found = likely(wanted, parent, place.names, place.twins) if place else ()
    found = tuple(one for one in found if parent_of(one) == parent or _same_folders(here, one))
    renamed = place.renamed if place else ""
    found = (renamed, *found) if renamed else found
    if not found or (place and place.missing_parents and _makes(s)):
        search = run("Search for the name in the whole workspace", "bash", "-c", fixed("search"), REMEDY, name_of(wanted).translate(GLOB_CHARS),
                     expected="The path of the file", expects=Expects(prints=True))  # fmt: skip
        return recipe(listing, search)
    if destroys(s.call.line):
        no_way(f"the call destroys what it is given, and {found[0]} is only like {wanted}")
    homes = [twin for twin in found if name_of(twin) == name_of(wanted)]
    if name_of(wanted) in listed("manifests") and len(homes) == 1 and s.is_command and wanted not in s.call.line:
        folder = parent_of(homes[0])
        return recipe(
            s.wrapped(f"Call it in {folder}, which has a {name_of(wanted)}", fixed("in_folder"), folder),
            requires=("bash",),
        )
    if found[1:] and not renamed and _rank(wanted, found[0]) == _rank(wanted, found[1]):
        several = ("ls", "-ld", "--", *found)
        return recipe(listing, run("Look at those that may be meant", *several, expected="They are listed"))
    others = f" (others: {', '.join(found[1:3])})" if found[1:] else ""
    step = s.changed(
        f"Call it again with {found[0]}{others}",
        lambda word: operand(found[0]) if word in {wanted, here, f"./{here}"} else word,
        _in_line(wanted, found[0]),
        listed("path_keys"),
    ) or run(
        f"Look at {found[0]}, which is there; the call itself has to name it", "ls", "-ld", "--", found[0], expected="It is listed",
    )  # fmt: skip
    same = renamed or (parent_of(found[0]) == parent and _rank(wanted, found[0])[0] >= SURE)
    return recipe(listing, step, likelihood=1.0 if same else GUESSED)


def _spaced(s: Situation, wanted: str, names: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    """Return a name with blanks that the call has as several words, and the call with it in one."""
    words, head = s.call.words or (), wanted[: -len(name_of(wanted)) or None]
    for name in names if s.is_command and not destroys(s.call.line) else ():
        pieces = tuple(f"{head}{name}".split(" "))
        for place in range(1, len(words) - len(pieces) + 1) if len(pieces) > 1 and pieces[0] == wanted else ():
            if words[place : place + len(pieces)] == pieces:
                return name, (*words[:place], f"{head}{name}", *words[place + len(pieces) :])
    return None


def _in_line(wanted: str, other: str) -> Callable[[str], str]:
    """Return what puts another path in the place of one that a line names once, however it is quoted there."""

    def change(line: str) -> str:
        for spelled in (shlex.quote(wanted), f'"{wanted}"', wanted):
            whole = rf"(?<![\w./~-]){re.escape(spelled)}(?![\w/-]|\.\w)"
            if len(re.findall(whole, line)) == 1:
                return re.sub(whole, lambda _: shlex.quote(other), line)
        return line

    return change


def create_missing_file(s: Situation) -> Recipe:
    """Make the folder that a write needs, or the file from its example or with nothing in it."""
    wanted, place = path(s) or no_way(NO_PATH), s.around.place or Place(path="", inside=True)
    if place.exists:
        no_way(f"{wanted} exists")
    if not place.inside:
        no_way(f"{wanted} is outside of the workspace")
    into = _is_target(s, wanted)
    if into or _makes(s) or (place.missing_parents and not s.is_command and "content" in s.call.args):
        make = _folder("Make the folder that it needs", wanted.rstrip("/") if into else parent_of(wanted))
        return recipe(make, s.again("Call it again, now that the folder is there"))
    example = next(
        (name for ending in listed("examples") for name in place.names if name == name_of(wanted) + ending), ""
    )
    made, expected = Expects(exists=(wanted,)), f"{wanted} exists"
    again = s.again("Call it again, now that the file is there")
    if example:
        source = f"{place.parent}/{example}" if place.parent != "." else example
        copy = run(f"Copy it from {example}", "cp", "-n", "--", source, wanted, expected=expected, expects=made, risk="caution")  # fmt: skip
        return recipe(copy, again, requires=("cp",))
    if _senseless(s, wanted):
        no_way(f"an empty {name_of(wanted)} is not what the call needs")
    empty = WriteFile(wanted, EMPTY.get(name_of(wanted).rpartition(".")[2].lower(), ""))
    action = "Create it with nothing in it, if the task asks for such a file"
    write = Step(action, empty, expected, "caution", made)
    return recipe(write, again._replace(again=False))  # an empty file is not the one that the call was about


def _senseless(s: Situation, wanted: str) -> bool:
    """Whether a file with nothing in it would help nobody: a pattern, code, a program, or what the call destroys or lists."""
    called = {part.split()[0].rpartition("/")[2] for part in parts(s.call.line)}
    pattern = any(char in wanted for char in "*?[")
    code = name_of(wanted) in listed("manifests") or name_of(wanted).rpartition(".")[2] in listed("never_empty")
    program_perhaps = not re.search(r"[./]", wanted) and wanted not in s.call.line
    return pattern or code or program_perhaps or not called.isdisjoint((*listed("destroyers"), *listed("only_readers")))


def _folder(action: str, folder: str) -> Step:
    return Step(action, MakeFolder(folder), f"{folder} exists", expects=Expects(exists=(folder,)))


def _is_target(s: Situation, wanted: str) -> bool:
    """Whether the path is the folder that a copy or an archive is put into."""
    words = s.call.words or ("",)
    before = words[words.index(wanted) - 1] if wanted in words[1:] else ""
    if program(words) == "tar":
        return before in {"-C", "--directory"} and bool(re.match(r"-?\w*x|--extract", words[1]))
    named = wanted == words[-1] and (wanted.endswith("/") or bool(re.search(r"target ['\u2018]", s.text)))
    return program(words) in {"cp", "mv", "install"} and (named or before in {"-t", "--target-directory"})


def _makes(s: Situation) -> bool:
    """Whether the call would have made the path itself, had its folder been there."""
    if s.around.place is not None and not s.around.place.missing_parents:
        return False
    wanted = path(s)
    called = filter(None, map(plain_words, parts(s.call.line)))
    return any(program(words) in listed("makers") and wanted in words[1:] for words in called) or _redirected(s, wanted)


def _redirected(s: Situation, target: str) -> bool:
    return bool(re.search(rf">\s*(?:{re.escape(target)}|{re.escape(shlex.quote(target))})", s.call.line))


# --- a denied path ------------------------------------------------------------------------------------------------


def try_sandbox_directory(s: Situation) -> Recipe:
    """Write to the same place below the sandbox, its folders kept."""
    denied = path(s) or no_way(NO_PATH)
    if not _writes(s, denied):
        no_way(f"reading {denied} cannot be moved elsewhere")
    if s.around.place is not None and s.around.place.inside and not s.around.place.read_only:
        no_way(f"{denied} is inside the workspace: what is written to the sandbox would never land there")
    target = sandboxed(denied, s.around.root, s.preferences.sandbox)
    moved = _moved(s, denied, target) or no_way(f"{denied} stands nowhere in the call where it could be replaced")
    if s.around.place is not None and not s.around.place.inside:
        moved = moved._replace(again=False)  # whoever wants it there finds nothing: it is another call
    prepare = _folder("Make its folder in the sandbox", parent_of(target))
    return recipe(
        prepare, moved, Step("Look at what was written", ListFolder(parent_of(target)), f"{target} is listed")
    )


def check_permissions(s: Situation) -> Recipe:
    """Run a script without its mode, or set a mode that is ours to set; sudo only where it is allowed."""
    place = s.around.place
    if place is None or not (place.exists or place.mine):
        no_way("there is no path whose permissions could be looked at")
    words = s.call.words
    script = bool(words) and not place.is_folder and not place.executable
    if words and script and words[0] in {place.path, f"./{place.path}"}:
        ending = name_of(place.path).rpartition(".")[2] if "." in name_of(place.path) else "sh"
        unsaid = f"nobody knows what runs {place.path}: its first line does not say"
        interpreter = place.interpreter or (s.table("interpreters").get(ending) or no_way(unsaid),)
        action = f"Run {place.path} by its interpreter: it may not be executed itself"
        return recipe(s.again(action, words=(*interpreter, *words)), requires=(name_of(interpreter[0]),))
    if _mode_is_ours(s):
        return _accessible(s, place)
    if place.read_only:
        no_way(f"{place.path} is on a read-only file system, where no mode helps")
    if not s.is_command or s.around.superuser:
        no_way(f"{place.path} is not ours to change")
    if s.preferences.never_sudo:
        no_way("it needs sudo, and the configuration says `never_sudo`")
    if not s.around.has("sudo"):
        no_way("there is no sudo")
    step = run("Call it with the rights of the superuser", "sudo", "-n", *s.call_words(),
               expected="The call succeeds", risk="privileged", again=True)  # fmt: skip
    return recipe(step, requires=("sudo",))


def _mode_is_ours(s: Situation) -> bool:
    """Whether what denies access is a mode in the workspace that we may change."""
    place = s.around.place
    return place is not None and place.mine and place.inside and not place.read_only


def _accessible(s: Situation, place: Place) -> Recipe:
    """Give the owner access, and take it again if that was not it."""
    subject = place.path if place.exists else place.parent
    mode = "u+rwx" if place.is_folder or not place.exists else "u+rw"
    back = Shell(("chmod", place.mode, "--", subject)) if place.mode else None
    return recipe(
        run(f"Look at the mode of {subject}", "ls", "-ld", "--", subject, expected="Its mode", expects=Expects(prints=True)),
        run(f"Give its owner access to {subject}", "chmod", mode, "--", subject, expected="The mode is set", risk="caution", back=back),
        s.again("Call it again, now that it is accessible"),
        requires=("chmod",),
    )  # fmt: skip


def _writes(s: Situation, denied: str) -> bool:
    """Whether the call was about to write there."""
    if not s.is_command:
        return any(key in s.call.args for key in listed("content_keys")) or "write" in s.call.tool.lower()
    writer = program(s.call.words) in listed("writers") and denied in (s.call.words or ())[1:]
    return _redirected(s, denied) or writer or bool(re.search(shape("writing"), s.text))


def _moved(s: Situation, denied: str, target: str) -> Step | None:
    action, made = "Write it to the sandbox instead", Expects(exists=(target,))
    contents = [s.call.args[key] for key in listed("content_keys") if isinstance(s.call.args.get(key), str)]
    if not s.is_command and contents:
        return Step(action, WriteFile(target, contents[0]), f"{target} is written", again=True, expects=made)

    def word(word: str) -> str:
        name, equals, value = word.partition("=")
        return target if word == denied else f"{name}={target}" if equals and value == denied else word

    return s.changed(action, word, lambda line: line.replace(denied, target), listed("path_keys"), expects=made)


# --- a full disk --------------------------------------------------------------------------------------------------

MOST_REMOVED = 50


def clean_up_temp_files(s: Situation) -> Recipe:
    """Remove the largest things that are ours: exact paths, each inside the workspace."""
    if not s.around.ours:
        no_way("nothing in the workspace is ours to delete")
    paths = tuple(name for name, _ in s.around.ours[:MOST_REMOVED])
    size = sum(size for _, size in s.around.ours[:MOST_REMOVED])
    action = f"Remove {len(paths)} caches and temporary files of ours, {size / 1e6:.1f} MB"
    step = Step(action, Remove(paths), "They are gone", expects=Expects(gone=paths))
    return _then_again(s, step, "Call it again, now that there is space")


def _then_again(s: Situation, step: Step, action: str) -> Recipe:
    """Return the step, and the call after it where anybody knows what was called."""
    return recipe(step, s.again(action)) if s.is_command or s.call.tool else recipe(step)


def write_smaller_file(s: Situation) -> Recipe:
    """Write less: the same document packed. A file under another name is not what was called for, so gzip is advice."""
    content, target, words = s.call.args.get("content"), path(s), s.call.words or ()
    if not s.is_command and isinstance(content, str) and target:
        smaller = _packed(content)
        if smaller is None or len(smaller.encode()) >= len(content.encode()):
            no_way("it cannot be packed without losing something")
        if s.around.free_bytes is not None and len(smaller.encode()) > s.around.free_bytes:
            no_way(f"it does not fit into the {max(0, s.around.free_bytes)} bytes that are left, however it is packed")
        action, made = "Write it without blanks that nobody needs", Expects(exists=(target,))
        return recipe(Step(action, WriteFile(target, smaller), f"{target} is written", expects=made, again=True))
    if words[:1] == ("cp",) and len(words) == 3 and not words[1].startswith("-"):  # noqa: PLR2004  # cp, source, target
        packed = run("Write it packed", "bash", "-c", fixed("gzip"), REMEDY, *words[1:], expected=f"{words[2]}.gz exists",
                     risk="caution", expects=Expects(exists=(f"{words[2]}.gz",)))  # fmt: skip
        return recipe(packed, requires=("gzip",))
    redirect = re.fullmatch(r"(?P<call>[^<>|&;`$]+?)>\s*(?P<file>[^\s<>|&;`$]+)", s.call.line.strip())
    if redirect and s.is_command:
        script = f"{redirect['call'].strip()} | gzip -9 > {redirect['file']}.gz"
        made = Expects(exists=(f"{shlex.split(redirect['file'])[0]}.gz",))
        return recipe(s.again("Write it packed", script=script, expects=made)._replace(again=False), requires=("gzip",))
    return no_way("nobody knows how to make it smaller")


def _packed(content: str) -> str | None:
    """Return a document without blanks that mean nothing; None where every blank may mean something."""
    try:
        return json.dumps(json.loads(content), separators=(",", ":"), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


# --- locks and half-done operations -------------------------------------------------------------------------------

STALE_SECONDS = 2


def remove_stale_lock(s: Situation) -> Recipe:
    """Remove a lock that nobody holds any more, and only inside the workspace."""
    lock = s.around.lock
    if lock is None or not lock.exists:
        no_way("no lock file is named that exists")
    if not lock.inside:
        no_way(f"{lock.path} is outside of the workspace")
    if lock.held:
        no_way(f"{lock.path} may still be in use")
    action, gone = f"Remove {lock.path}, which nobody holds", Expects(gone=(lock.path,))
    step = Step(action, Remove((lock.path,)), "It is gone", expects=gone)
    if lock.age < STALE_SECONDS:  # whoever made it may be about to come back
        step = run(f"{action}, if it is the same in {STALE_SECONDS} seconds", "bash", "-c", fixed("remove_same"), REMEDY, lock.path, str(STALE_SECONDS), expected="It is gone", expects=gone)  # fmt: skip
    return _then_again(s, step, "Call it again, now that the lock is gone")


# --- paths --------------------------------------------------------------------------------------------------------

SIMILAR, SURE, GUESSED = 0.72, 0.93, 0.7
MOST = 5
SAME_ENDINGS = ({"yml", "yaml"}, {"htm", "html"}, {"jpg", "jpeg"}, {"md", "markdown"})


def sandboxed(path: str, root: str, sandbox: str) -> str:
    """Return the place of a path below the sandbox: its folders are kept, and it can never leave."""
    if root != "." and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :]
    kept: list[str] = []
    for part in path.split("/"):
        if part == "..":
            kept = kept[:-1]
        elif part not in {"", ".", "~"}:
            kept.append(part)
    return "/".join((sandbox.rstrip("/"), *(kept or ["file"])))


def parent_of(path: str) -> str:
    head, slash, _ = path.rstrip("/").rpartition("/")
    return head or ("/" if slash else ".")


def likely(path: str, parent: str, names: Iterable[str], twins: Sequence[str]) -> tuple[str, ...]:
    """Rank the existing paths that a wrong one may mean: by case, by spelling, by another ending, by another place."""
    wanted, folder = name_of(path), "" if parent in {"", "."} else f"{parent}/"
    scored = [(_likeness(wanted, name), f"{folder}{name}") for name in names]
    scored += [(_likeness(wanted, name_of(twin)) - 0.05 - place / 1000, twin) for place, twin in enumerate(twins[:200])]
    best = sorted((one for one in scored if one[0] >= SIMILAR), key=lambda one: (-one[0], len(one[1]), one[1]))
    return tuple(dict.fromkeys(found for _, found in best))[:MOST]


def _same_folders(wanted: str, found: str) -> bool:
    """Whether one path has the folders of the other, some perhaps left out or misspelled: with others it is another file."""
    few, many = sorted((wanted.split("/")[:-1], found.split("/")[:-1]), key=len)
    rest = iter(many)
    return all(any(alike(folder, other) for other in rest) for folder in few)


def _rank(wanted: str, found: str) -> tuple[float, int]:
    """Return how near a path is to what was wanted: by its name, and by how many folders above it are the same or misspelled."""
    pairs = zip(reversed(wanted.split("/")[:-1]), reversed(found.split("/")[:-1]), strict=False)
    return _likeness(name_of(wanted), name_of(found)), len(list(takewhile(lambda pair: alike(*pair), pairs)))


def _likeness(wanted: str, name: str) -> float:
    """Return 1 for the same name, a little less for another case or ending, less for another spelling, 0 for another name."""
    if name == wanted:
        return 1.0
    if name.casefold() == wanted.casefold():
        return 0.98
    stem, _, ending = wanted.casefold().rpartition(".")
    its_stem, _, its_ending = name.casefold().rpartition(".")
    if stem and its_stem == stem:
        return 0.95 if {ending, its_ending} in SAME_ENDINGS else 0.0
    if _squeezed(name) == _squeezed(wanted):
        return 0.93
    return 0.85 if alike(wanted, name) else 0.0


def _squeezed(name: str) -> str:
    return re.sub(r"[-_ .]", "", name.casefold())
