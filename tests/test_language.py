"""Check that the source is written in the plain words of the style guide.

`python tests/test_language.py src/unstuck/git` prints the findings of a folder or file.
`python tests/test_language.py --write` lowers the numbers in `tests/language_allowed.txt`. It never raises one.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "unstuck"
ALLOWED_FILE = ROOT / "tests" / "language_allowed.txt"

MAX_WORDS = 20
SENTENCE_END = re.compile(r"(?<!e\.g)(?<!i\.e)[.!?][)\"']*(?=\s+[A-Z`\"'(]|$)")
OPENER = re.compile(r"(Say|Tell|Give|Let|Take|Hold|Ask)s?\b")
RIDDLE = re.compile(r"(What|Whether|Who|Why|How)\b")
TWO_SUBJECTS = re.compile(r"[^,]*, and ")
"""An "and" behind the only comma joins two statements. A list of three has an earlier comma."""
IDIOM = re.compile(
    r"\b(of ours|none of theirs|anew|besides|thereof|as it were|as it is|by itself|that one|is to be|has it that"
    r"|nobody|whoever|somebody|anybody|is told|are told|comes? home|h[eo]lds? (?:\w+ ){0,3}against"
    r"|let (?:\w+ )?\w+ be|taken for|takes? (?:it|them|this) for)\b",
    re.IGNORECASE,
)
CODE_SPAN = re.compile(r"`[^`]*`")
BANNED_NAMES = frozenset(
    ("one", "found", "told", "said", "known", "others", "asked", "shown", "who", "whom", "that", "thing", "things")
)


class Finding(NamedTuple):
    """One place in a source file that breaks the style."""

    line: int
    message: str


def findings_in(text: str, *, is_package: bool = False) -> list[Finding]:
    """Return the findings of one source text. An `__init__.py` may lack a docstring."""
    tree = ast.parse(text)
    findings = {*docstring_findings(tree), *comment_findings(text), *name_findings(tree)}
    if not is_package and ast.get_docstring(tree) is None:
        findings.add(Finding(1, "module: no docstring"))
    return sorted(findings)


def docstring_findings(tree: ast.Module) -> Iterator[Finding]:
    """Yield the findings in docstrings of modules, classes, functions and constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            owner = {ast.Module: "module", ast.ClassDef: "class"}.get(type(node), "function")
            for previous, statement in pairwise([node, *node.body]):
                match previous, statement:
                    case _, ast.Expr(ast.Constant(str(text))) if previous is node:
                        kind = owner
                    case ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(str(text))):
                        kind = "constant"
                    case _:
                        continue
                for message in (*sentence_problems(kind, text), *idioms(text)):
                    yield Finding(statement.lineno, f"{kind}: {message}")


def sentence_problems(owner: str, docstring: str) -> Iterator[str]:
    """Yield what is wrong with the first sentence of a docstring."""
    if docstring.startswith("Edge: "):
        yield "begins with `Edge: `"
    sentence = first_sentence(docstring.removeprefix("Edge: "))
    riddle = None if sentence.endswith("?") else RIDDLE.match(sentence)
    opener = OPENER.match(sentence) if owner == "function" else None
    if match := riddle or opener:
        yield f"begins with {match[0]!r}"
    if owner == "constant":
        return
    if (words := len(sentence.split())) > MAX_WORDS:
        yield f"first sentence has {words} words ({MAX_WORDS})"
    if ";" in CODE_SPAN.sub("", sentence):
        yield "semicolon in the first sentence"
    if owner == "module" and TWO_SUBJECTS.match(sentence):
        yield "first sentence has two subjects"


def first_sentence(docstring: str) -> str:
    """Return the first sentence, which ends at a full stop, an empty line or a list."""
    paragraph = re.split(r"\n\s*(?:\n|[-*] )", docstring.strip())[0]
    text = " ".join(paragraph.split())
    end = SENTENCE_END.search(text)
    return text[: end.end()] if end else text


def idioms(text: str) -> Iterator[str]:
    """Yield each banned idiom in a text, but not those in back-ticks."""
    for match in IDIOM.finditer(CODE_SPAN.sub("", " ".join(text.split()))):
        yield f"{match[0]!r}"


def comment_findings(text: str) -> Iterator[Finding]:
    """Yield the banned idioms in comments."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            for message in idioms(token.string):
                yield Finding(token.start[0], f"comment: {message}")


def name_findings(tree: ast.Module) -> Iterator[Finding]:
    """Yield each place where a banned name is assigned, or is an argument."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                line = node.lineno
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                line = node.lineno
            case _:
                continue
        if name in BANNED_NAMES:
            yield Finding(line, f"name `{name}`")


def findings_of(path: Path) -> list[Finding]:
    """Return the findings of one source file."""
    return findings_in(path.read_text(encoding="utf-8"), is_package=path.name == "__init__.py")


def source_files(folder: Path = SOURCE) -> list[Path]:
    """Return the Python files in a folder, without those of the catalogue."""
    return [path for path in sorted(folder.rglob("*.py")) if "catalog" not in path.parts]


def findings_per_file() -> dict[str, int]:
    """Return how many findings each source file has, for those that have any."""
    counts = {path.relative_to(ROOT).as_posix(): len(findings_of(path)) for path in source_files()}
    return {path: count for path, count in counts.items() if count > 0}


def allowed_per_file() -> dict[str, int]:
    """Return how many findings each source file may still have."""
    lines = ALLOWED_FILE.read_text(encoding="utf-8").splitlines() if ALLOWED_FILE.exists() else []
    return {path: int(count) for path, _, count in (line.partition(" ") for line in lines)}


def complaints(counts: dict[str, int], allowed: dict[str, int]) -> list[str]:
    """Return what to do about each file whose findings are not those that it may have."""
    messages = []
    for path in sorted(counts | allowed):
        count, limit = counts.get(path, 0), allowed.get(path, 0)
        if count > limit:
            messages.append(f"{path}: {count} findings, {limit} allowed. See `python tests/test_language.py {path}`")
        elif count < limit or limit == 0:
            messages.append(f"{path}: lower the number in tests/language_allowed.txt to {count or 'nothing'}")
    return messages


def lowered(counts: dict[str, int], allowed: dict[str, int]) -> dict[str, int]:
    """Return the list with lower numbers where files improved, without files that have no findings."""
    return {path: min(limit, counts[path]) for path, limit in allowed.items() if path in counts}


def test_no_file_has_more_findings_than_it_may_have() -> None:
    problems = complaints(findings_per_file(), allowed_per_file())
    assert not problems, "\n".join(problems)


def test_the_list_of_findings_can_only_shrink() -> None:
    counts, allowed = {"a.py": 3, "b.py": 1, "new.py": 5}, {"a.py": 2, "b.py": 4, "gone.py": 1}
    assert [message.partition(". ")[0] for message in complaints(counts, allowed)] == [
        "a.py: 3 findings, 2 allowed",
        "b.py: lower the number in tests/language_allowed.txt to 1",
        "gone.py: lower the number in tests/language_allowed.txt to nothing",
        "new.py: 5 findings, 0 allowed",
    ]
    assert lowered(counts, allowed) == {"a.py": 2, "b.py": 1}


PLAIN = '''"""Return the commits that landed in a run."""
MAX_COMMITS = 5
"""Longer lists are cut, because a person reads them."""

def commits(run: str) -> list[str]:
    """Return the commits of `run; of ours`, e.g. `4f1c`. What follows may be long; it is no summary."""
    return [commit for commit in run.split()]  # git prints one per line
'''
SAMPLES = {
    "module: no docstring": "LIMIT = 5",
    "module: begins with `Edge: `": '"""Edge: The queue of a worker."""',
    "module: begins with 'What'": '"""What a worker does."""',
    "module: semicolon in the first sentence": '"""The queue of a worker; its lease."""',
    "module: first sentence has two subjects": '"""The queue of a worker, and its lease."""',
    "module: first sentence has 21 words (20)": f'"""{"word " * 21}"""',
    "module: 'anew'": '"""A queue. A worker reads it anew."""',
    "class: begins with 'Who'": '"""A queue."""\nclass Owner:\n    """Who owns it."""',
    "constant: begins with 'Why'": '"""A queue."""\nREASON = 1\n"""Why it waits."""',
    "constant: 'of ours'": '"""A queue."""\nclass Job:\n    agent: str\n    """A name of ours."""',
    "comment: 'Nobody'": '"""A queue."""\nLIMIT = 1  # Nobody reads it',
    "name `found`": '"""A queue."""\nwith open("a") as found: pass',
    "name `one`": '"""A queue."""\nnames = [one for one in "ab"]',
    "name `others`": '"""A queue."""\ndef run(*others): pass',
    "name `told`": '"""A queue."""\nmatch LIMIT:\n    case told: pass',
}
BANNED_IDIOMS = (
    "of ours, none of theirs, anew, besides, thereof, as it were, as it is, by itself, that one, is to be, has it that"
    ", nobody, whoever, somebody, anybody, is told, are told, comes home, come home, held against, hold it against"
    ", let it be, let the work be, taken for, take it for"
)


def test_each_kind_of_finding_is_caught_and_plain_source_has_none() -> None:
    assert findings_in(PLAIN) == []
    messages = {message: [finding.message for finding in findings_in(source)] for message, source in SAMPLES.items()}
    assert messages == {message: [message] for message in SAMPLES}


def test_a_function_begins_with_a_plain_verb() -> None:
    openers = ["Say", "Tell", "Give", "Let", "Take", "Hold", "Ask", "What", "Whether", "Who", "Why", "How"]
    problems = [list(sentence_problems("function", f"{opener} it is.")) for opener in openers]
    assert problems == [[f"begins with {opener!r}"] for opener in openers]
    assert list(sentence_problems("function", "Who owns the run?")) == []


def test_each_idiom_is_caught_over_the_end_of_a_line() -> None:
    banned = BANNED_IDIOMS.split(", ")
    assert [list(idioms(f"It {idiom} here.".replace(" ", "\n"))) for idiom in banned] == [
        [repr(idiom)] for idiom in banned
    ]


def test_each_banned_name_is_caught() -> None:
    source = "\n".join(f"{name} = 1" for name in sorted(BANNED_NAMES))
    assert len(list(name_findings(ast.parse(source)))) == len(BANNED_NAMES)


def main(arguments: list[str]) -> None:
    """Lower the numbers of the list, or print the findings of the given files and folders."""
    if arguments == ["--write"]:
        allowed = lowered(findings_per_file(), allowed_per_file()) if ALLOWED_FILE.exists() else findings_per_file()
        text = "".join(f"{path} {count}\n" for path, count in sorted(allowed.items()))
        ALLOWED_FILE.write_text(text, encoding="utf-8")
        return
    for folder in map(Path, arguments or [str(SOURCE)]):
        for path in source_files(folder) if folder.is_dir() else [folder]:
            for finding in findings_of(path):
                sys.stdout.write(f"{path}:{finding.line} {finding.message}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
