"""Ways out of what cannot be parsed: the repair that parses, simpler commands, or every shell's syntax. Pure."""

import json
import re
from collections.abc import Iterator

from unstuck.model.failure import Kind
from unstuck.remedies.call_words import ASSIGNMENT, destroys, plain_words, program
from unstuck.remedies.chain import ReadFile, Recipe, Script, Step, WriteFile, listed, no_way, recipe, run, shape
from unstuck.remedies.situation import Situation, path
from unstuck.shipped import shipped_table
from unstuck.toolchain.shell import parts

SHELLS = ("bash", "sh", "dash", "zsh", "ksh")
POSIX_SHELLS = frozenset({"sh", "dash"})
UNCERTAIN = "no repair of ours can be parsed"


def texts(s: Situation) -> tuple[str, ...]:
    """Return every spelling whose parsing must be known before the ways can be filled in."""
    source = s.around.source or s.call.line
    return tuple(dict.fromkeys((source, *repairs(source), posix(source), *parts(source)[:10])))


def spellings(s: Situation) -> tuple[str, str]:
    """Return the text as it is, and in every shell's syntax."""
    source = s.around.source or s.call.line
    return source, posix(source)


def runs_sh(s: Situation) -> bool:
    return program(s.call.words) in POSIX_SHELLS


def script_file(s: Situation) -> str:
    """Return the file that cannot be parsed, where it is one."""
    words = s.call.words or ()
    if program(words) in SHELLS:
        return next((word for word in words[1:] if not word.startswith("-")), "") if "-c" not in words else ""
    if words and words[0].endswith((".sh", ".bash")):
        return words[0]
    if makefile := re.search(shape("makefile"), s.text):
        return makefile[1]
    named = [file for file, _ in s.where if file.endswith((".sh", ".bash", ".json"))]
    found = [*named, *(word for word in words if word.endswith(".json"))] or [path(s)]
    return found[0] if found[0].endswith((".json", ".sh", ".bash")) else ""


def fix_syntax(s: Situation) -> Recipe:
    """Correct common mistakes; only what the shell itself can parse is proposed."""
    if known := s.known_repair():
        return recipe(known)
    file = script_file(s)
    if file and s.around.source:
        return _mended_file(s, file)
    if not s.is_command or s.kind != Kind.COMMAND_SYNTAX:
        file, line = next(iter(s.where), ("", None))
        if not file:
            no_way("the failure names no file")
        return recipe(
            Step(f"Read {file} around line {line or 1} and correct it", ReadFile(file), "The mistake is seen")
        )
    script = _parsed(s.call.line, s.around.parses.get("bash", frozenset()))
    return recipe(s.again("Run it with its syntax corrected", script=script), requires=("bash",))


def _parsed(source: str, parses: frozenset[str]) -> str:
    """Return the first repair that can be parsed."""
    return next((one for one in repairs(source) if one in parses), "") or no_way(UNCERTAIN)


def use_simpler_command(s: Situation) -> Recipe:
    """Run the parts that can be parsed one after the other."""
    if not s.is_command or script_file(s) or s.kind != Kind.COMMAND_SYNTAX:
        no_way("it is no command that could be divided")
    if "|" in s.call.line:
        no_way("its parts depend on one another")
    found = [part for part in parts(s.call.line) if part.split(maxsplit=1)[0] not in listed("keywords")]
    if any(part.split(maxsplit=1)[0] in listed("of_one_shell") or re.match(ASSIGNMENT, part) for part in found):
        no_way("its parts share what one shell knows")
    if len(found) < 2 or not s.around.parses.get("bash", frozenset()).issuperset(found):  # noqa: PLR2004  # one part is no division
        no_way("it does not consist of simpler commands that can be parsed")
    steps = [
        s.again(f"Run part {number} by itself", script=part, words=plain_words(part))
        for number, part in enumerate(found, 1)
    ]
    return recipe(*steps, requires=("bash",))


def try_alternative_syntax(s: Situation) -> Recipe:
    """Use the syntax of every shell where bash's own was refused, or bash where it is needed."""
    file, (source, other) = script_file(s), spellings(s)
    if not file and s.kind != Kind.COMMAND_SYNTAX:
        no_way("it is no command of a shell")
    bash, sh = (s.around.parses.get(name, frozenset()) for name in ("bash", "sh"))
    if file and runs_sh(s) and source in bash:
        words = ("bash", *(s.call.words or ())[1:])
        return recipe(s.again("Run it with bash, which can read it", words=words), requires=("bash",))
    succeeds = "The call succeeds"
    if other != source and other in sh:
        if file:
            return recipe(_rewritten(file, other), s.again("Call it again, now that every shell can read it"))
        operation = Script(other, shell="sh")  # noqa: S604  # a name, not a switch
        step = Step("Run it in the syntax that every shell reads", operation, succeeds, "caution", again=True)
        return recipe(step, requires=("sh",))
    if not file and source in bash and source not in sh:
        action = "Run it with bash, whose syntax it has"
        step = run(action, "bash", "-c", source, expected=succeeds, risk="caution", again=True)
        return recipe(step, requires=("bash",))
    return no_way("no other syntax of it is known that can be parsed")


def _mended_file(s: Situation, file: str) -> Recipe:
    source = s.around.source
    if file.endswith(".json"):
        mended = mended_json(source) or no_way("no repair of ours makes it JSON")
        return recipe(_rewritten(file, mended), s.again("Call it again, now that the file can be read"))
    if re.search(shape("makefile"), s.text):
        tabs = re.sub(r"(?m)^ {2,8}(?=\S)", "\t", source)
        return recipe(_rewritten(file, tabs), s.again("Call it again, now that its recipes begin with tabs"))
    if destroys(source):
        no_way(f"{file} destroys things, and what it should say is a guess")
    own = program(s.call.words)
    shell = own if own in POSIX_SHELLS else "bash"
    mended = _parsed(source, s.around.parses.get("bash" if shell == "bash" else "sh", frozenset()))
    again = s.again("Call it again, now that it can be parsed")
    return recipe(_rewritten(file, mended), again, requires=(shell,))


def _rewritten(file: str, content: str) -> Step:
    write = WriteFile(file, content if content.endswith("\n") else f"{content}\n")
    return Step(f"Write {file} with its syntax corrected", write, "It can be parsed", "caution")


# --- candidates, likeliest first; whether one parses, the shells say ----------------------------------------------

MOST = 16
LONGEST = 16_384
SMART = str.maketrans(
    {"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'", "\u2013": "-", "\u2014": "--", "\u00a0": " "}
)
BLOCKS = {"if": "fi", "for|while|until": "done", "case": "esac"}
"""What begins a block → what ends it."""
BEGIN, END = r"(?:^|[;\n&|(]|\bthen|\bdo|\belse)[ \t]*(?:{})\b", r"(?:^|[;\n])[ \t]*{}\b"
HEREDOC = r"<<-?\s*['\"]?(\w+)['\"]?"


def repairs(text: str) -> tuple[str, ...]:
    """Return other spellings of a shell script that may be what was meant."""
    if not text or len(text) > LONGEST:
        return ()
    found: dict[str, None] = {}
    base = text.replace("\r\n", "\n").replace("\r", "\n").translate(SMART)
    for start in dict.fromkeys((base, _respelled(base, "spaced"))):
        for candidate in _candidates(start):
            if candidate != text and candidate.strip():
                found.setdefault(candidate)
    return tuple(found)[:MOST]


def _candidates(text: str) -> Iterator[str]:
    yield text
    line = text.rstrip()
    yield _closed_blocks(line)
    yield _closed_quotes(line)
    yield _closed_blocks(_closed_quotes(line))
    yield _closed_brackets(line)
    yield _closed_blocks(_closed_brackets(_closed_quotes(line)))
    if heredoc := re.search(HEREDOC, line):
        yield f"{line}\n{heredoc[1]}\n"
    yield from (re.sub(wrong, right, line) for wrong, right in shipped_table("chains")["shell"]["slips"])
    yield _without_extra_closers(line)


def _respelled(text: str, name: str) -> str:
    """Make all the changes of one of the catalogue's lists."""
    for wrong, right in shipped_table("chains")["shell"][name]:
        text = re.sub(wrong, right, text)
    return text


def posix(text: str) -> str:
    """Return the script with bash's own syntax spelled as every shell reads it, as far as that is possible."""
    if len(text) > LONGEST:
        return text
    text = re.sub(r"\[\[\s+([^\n\]]{1,400}?)\s+\]\]", lambda found: _tests(found[1]), text)
    return re.sub(r"\{(\d{1,4})\.\.(\d{1,4})\}", _counted, _respelled(text, "posix"))


QUOTED = r'("(?:[^"\\\n]|\\.)*")|'
"""What stands between quotes is left as it is."""


def mended_json(text: str) -> str:
    """Return a JSON document without what hand-written ones have too much of; empty if that is not enough."""
    if len(text) > LONGEST:
        return ""
    bare = text.lstrip("\ufeff").translate({ord("\u201c"): '"', ord("\u201d"): '"'})
    for wrong, right in shipped_table("chains")["json"]["by_hand"]:
        bare = _outside_quotes(bare, wrong, right)
    try:
        json.loads(bare)
    except (ValueError, RecursionError):
        return ""
    return bare


def _outside_quotes(text: str, wrong: str, right: str) -> str:
    return re.sub(QUOTED + wrong, lambda found: found[1] or found.expand(right), text)


def _closed_blocks(text: str) -> str:
    """Add the words that end what was begun, the innermost first."""
    bare = re.sub(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|#[^\n]*", "x", text)
    begun = [(found.start(), end) for begin, end in BLOCKS.items() for found in re.finditer(BEGIN.format(begin), bare)]
    ended = {end: len(re.findall(END.format(end), bare)) for end in BLOCKS.values()}
    open_ones = []
    for _, end in sorted(begun):
        if ended[end]:
            ended[end] -= 1
        else:
            open_ones.append(end)
    return "".join((text, *(f"\n{end}" if text.endswith(";;") else f"; {end}" for end in reversed(open_ones))))


def _closed_quotes(text: str) -> str:
    """Close the quotation that is open at the end; not one that would swallow what only a shell does."""
    quote, escaped, begun = "", False, 0
    for place, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote, begun = char, place
    return text if quote and re.search(r"[<>|&;]", text[begun:]) else text + quote


def _closed_brackets(text: str) -> str:
    bare = re.sub(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", "", text)
    missing = "".join(
        close * max(0, bare.count(start) - bare.count(close))
        for start, close in (("[[", " ]]"), ("(", ")"), ("{", "; }"))
    )
    single = " ]" if "[[" not in bare and bare.count("[ ") > bare.count(" ]") else ""
    return text + single + missing


def _without_extra_closers(text: str) -> str:
    for start, close in (("(", ")"), ("{", "}")):
        if text.count(close) > text.count(start):
            text = text[: text.rindex(close)] + text[text.rindex(close) + 1 :]
    return text


def _tests(inside: str) -> str:
    clauses = re.split(r"\s*(&&|\|\|)\s*", inside.replace(" == ", " = "))
    return " ".join(clause if clause in {"&&", "||"} else f"[ {clause} ]" for clause in clauses)


def _counted(found: re.Match[str]) -> str:
    first, last = int(found[1]), int(found[2])
    numbers = range(first, last + 1) if first <= last else range(first, last - 1, -1)
    return " ".join(map(str, numbers)) if len(numbers) <= 200 else found[0]  # noqa: PLR2004  # a list that can be read
