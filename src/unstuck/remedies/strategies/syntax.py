"""Ways out of what cannot be parsed: the repair that parses, simpler commands, or every shell's syntax."""

import re

from unstuck.diagnosis import Kind
from unstuck.remedies import subject as reading
from unstuck.remedies.call_words import ASSIGNMENT, parts, plain_words
from unstuck.remedies.shell_repair import mended_json, posix, repairs
from unstuck.remedies.situation import Situation
from unstuck.remedies.step import ReadFile, Recipe, Script, Shell, Step, WriteFile

SHELLS = ("bash", "sh", "dash", "zsh", "ksh")
KEYWORDS = frozenset(
    (
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "{",
        "}",
        "(",
        ")",
        "function",
    )
)
OF_ONE_SHELL = frozenset(
    {"cd", "pushd", "popd", "export", "source", ".", "set", "unset", "alias", "umask", "exec", "eval", "trap"}
)
"""What changes the shell that the other parts run in."""
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
    return bool(s.call.words) and (s.call.words or ("",))[0].rsplit("/", 1)[-1] in {"sh", "dash"}


def script_file(s: Situation) -> str:
    """Return the file that cannot be parsed, where it is one."""
    words = s.call.words
    if words and words[0].rsplit("/", 1)[-1] in SHELLS:
        return next((word for word in words[1:] if not word.startswith("-")), "") if "-c" not in words else ""
    if words and words[0].endswith((".sh", ".bash")):
        return words[0]
    named = [file for file, _ in s.where if file.endswith((".sh", ".bash", ".json"))]
    jsons = [word for word in words or () if word.endswith(".json")]
    found = reading.path(s)
    return (named or jsons or ([found] if found.endswith((".json", ".sh")) else []) or [""])[0]


def fix_syntax(s: Situation) -> Recipe | str:
    """Correct common mistakes; only what the shell itself can parse is proposed."""
    file = script_file(s)
    if file and s.around.source:
        return _mended_file(s, file)
    if not s.is_command or s.kind != Kind.COMMAND_SYNTAX:
        return _read_it(s)
    for candidate in repairs(s.call.line):
        if candidate in s.around.parses.get("bash", frozenset()):
            return Recipe(steps=(s.again("Run it with its syntax corrected", script=candidate),), requires=("bash",))
    return UNCERTAIN


def use_simpler_command(s: Situation) -> Recipe | str:
    """Run the parts that can be parsed one after the other."""
    if not s.is_command or script_file(s) or s.kind != Kind.COMMAND_SYNTAX:
        return "it is no command that could be divided"
    if re.search(r"(?<!\|)\|(?!\|)|&&|\|\|", s.call.line) and not re.search(r"&&", s.call.line):
        return "its parts depend on one another"
    found = [part for part in parts(s.call.line) if part.split(maxsplit=1)[0] not in KEYWORDS]
    if any(part.split(maxsplit=1)[0] in OF_ONE_SHELL or re.match(ASSIGNMENT, part) for part in found):
        return "its parts share what one shell knows"
    sound = [part for part in found if part in s.around.parses.get("bash", frozenset())]
    if len(sound) < 1 or len(found) < 2 or len(sound) != len(found):  # noqa: PLR2004  # one part is no division
        return "it does not consist of simpler commands that can be parsed"
    steps = tuple(
        s.again(f"Run part {number} by itself", script=part, words=plain_words(part))
        for number, part in enumerate(sound, 1)
    )
    return Recipe(steps=steps, requires=("bash",))


def try_alternative_syntax(s: Situation) -> Recipe | str:
    """Use the syntax of every shell where bash's own was refused, or bash where it is needed."""
    file, source = script_file(s), s.around.source or s.call.line
    words = s.call.words
    if not file and s.kind != Kind.COMMAND_SYNTAX:
        return "it is no command of a shell"
    bash, sh = (s.around.parses.get(name, frozenset()) for name in ("bash", "sh"))
    if file and words and words[0].rsplit("/", 1)[-1] in {"sh", "dash"} and source in bash:
        return Recipe(
            steps=(s.again("Run it with bash, which can read it", words=("bash", *words[1:])),), requires=("bash",)
        )
    other = posix(source)
    if other != source and other in sh:
        if file:
            return Recipe(steps=(_rewritten(file, other), s.again("Call it again, now that every shell can read it")))
        step = Step(
            action="Run it in the syntax that every shell reads",
            deed=Script(text=other, shell="sh"),  # noqa: S604  # a name, not a switch
            expected="The call succeeds",
            risk="caution",
            again=True,
        )
        return Recipe(steps=(step,), requires=("sh",))
    if not file and source in bash and source not in sh:
        step = Step(
            action="Run it with bash, whose syntax it has",
            deed=Shell(argv=("bash", "-c", source)),
            expected="The call succeeds",
            risk="caution",
            again=True,
        )
        return Recipe(steps=(step,), requires=("bash",))
    return "no other syntax of it is known that can be parsed"


def _mended_file(s: Situation, file: str) -> Recipe | str:
    source = s.around.source
    if file.endswith(".json"):
        mended = mended_json(source)
        if not mended:
            return "no repair of ours makes it JSON"
        return Recipe(steps=(_rewritten(file, mended), s.again("Call it again, now that the file can be read")))
    interpreter = (s.call.words or ("bash",))[0].rsplit("/", 1)[-1]
    shell = interpreter if interpreter in {"sh", "dash"} else "bash"
    parses = s.around.parses.get("sh" if shell == "dash" else shell, frozenset())
    for candidate in repairs(source):
        if candidate in parses:
            return Recipe(
                steps=(_rewritten(file, candidate), s.again("Call it again, now that it can be parsed")),
                requires=(shell,),
            )
    return UNCERTAIN


def _rewritten(file: str, content: str) -> Step:
    return Step(
        action=f"Write {file} with its syntax corrected",
        deed=WriteFile(path=file, content=content),
        expected="It can be parsed",
        risk="caution",
    )


def _read_it(s: Situation) -> Recipe | str:
    file, line = next(iter(s.where), ("", None))
    if not file:
        return "the failure names no file"
    return Recipe(
        steps=(
            Step(
                action=f"Read {file} around line {line or 1} and correct it",
                deed=ReadFile(path=file),
                expected="The mistake is seen",
            ),
        )
    )
