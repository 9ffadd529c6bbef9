"""Edge: Whether a run still hears: of tests that fail on purpose, and of a script that fails at its end.

Law: what was heard on the base and is not heard now is asked once more, alone: only then has the change made it deaf.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from unstuck.verdict import Check, Remark
from unstuck.verify.change import added_lines, found, is_judge, known, part_of, pattern
from unstuck.verify.checks import Rewritten, is_test_run, only_looks
from unstuck.verify.exam import Exam

PURPOSE = "purpose"
"""In the name of every test that fails on purpose."""
MOST = 20
"""Files that get such tests."""
_PURPOSES = re.compile(r"fails_on_purpose_\w+")


def hears(exam: Exam) -> Iterator[Remark]:
    """Find a run of tests that no longer hears of one that fails: code of the change reaches its runner, and has bent it."""
    added = {
        one.path: "\n".join(line.text for line in added_lines(one)) for one in exam.changes if not is_judge(one.path)
    }
    reaching = [path for path, text in added.items() if pattern("judge", "reaches").search(text)]
    reaching += [one.path for one in exam.changes if one.old is None and _stands_for_another(one.path)]
    forms = _canaries(exam, reaching) if reaching else {}
    for check, result in exam.checks if forms else ():
        if result.status != "pass" or not is_test_run(check):
            continue
        written = {path: _below("".join(texts)) for path, texts in forms.items()}
        before, now = (exam.site.beside(check, exam.subject.base, one, written) for one in (None, exam.subject.tree))
        heard = {test for test in before.tests if PURPOSE in test}
        if heard and (now.ended.ok or any(map(_is_deaf(exam, check, forms), heard - {*now.tests}))):
            says = f"With {reaching[0]} in it, `{check.command}` does not hear of a test that fails on purpose."
            yield found("deaf-check", reaching[0], says=says)
            return


def _canaries(exam: Exam, reaching: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return what is written below test files that the base has as well, where code of their language was added."""
    rows = [row for row in known()["canary"] if any(_ends(path, row["ending"]) for path in reaching)]
    new = {one.path for one in exam.changes if one.old is None}
    files = exam.kit.workspace.files(exam.subject.tree) if rows else ()
    tests = [path for path in files if part_of(path) == "test" and path not in new]
    texts = _texts(exam, [path for path in tests if any(_ends(path, row["ending"]) for row in rows)][:MOST])
    shown = [
        (path, row["forms"])
        for row in reversed(rows)
        for path, text in texts.items()
        if _ends(path, row["ending"]) and re.search(row.get("holds", ""), text)
    ]
    return dict(shown)


def _below(text: str) -> Rewritten:
    return lambda old: old + text


def _ends(path: str, ending: str) -> bool:
    return re.search(rf"\.{ending}$", path) is not None


def _is_deaf(exam: Exam, check: Check, forms: Mapping[str, Sequence[str]]) -> Callable[[str], bool]:
    """Ask alone for what was not heard among others: a run may end at its first failure, and a long output is not read whole."""
    asked: dict[str, bool] = {}

    def deaf(test: str) -> bool:
        path = next((path for path in forms if path in test), next(iter(forms)))
        text = next(
            (text for text in forms[path] if (name := _PURPOSES.search(text)) and name[0] in test), forms[path][0]
        )
        if text not in asked:
            alone = exam.site.beside(check, exam.subject.base, exam.subject.tree, {path: _below(text)})
            asked[text] = alone.ended.ok or not any(PURPOSE in one for one in alone.tests)
        return asked[text]

    return deaf


def _stands_for_another(path: str) -> bool:
    """Whether a new module at the top is found in the place of one that Python, or a runner of it, is made of."""
    name, _, rest = path.removesuffix(".py").partition("/")
    top = path.endswith(".py") and rest in {"", "__init__"}
    return top and (name in sys.stdlib_module_names or name in known()["shadow"]["parts"])


def comes_to_its_end(exam: Exam) -> Iterator[Remark]:
    """Find a script that is a check and does not come to its end: code of the change may end its process before.

    One that ends itself, that the check does not listen to, or that ends before on the base as well, was not ended by the change.
    """
    added = {one.path: "\n".join(line.text for line in added_lines(one)) for one in exam.changes}
    signs = [pattern("judge", name) for name in ("ends", "reaches")]
    ending = [path for path, text in added.items() if any(sign.search(text) for sign in signs)]
    for check, result in exam.checks if ending else ():
        scripts = _scripts(exam, check) if result.status == "pass" and not only_looks(check) else {}
        rows = {path: row for path in scripts for row in known()["script"] if _ends(path, row["ending"])}
        led = {
            path: _can_end(exam, row, scripts[path], [one for one in ending if one != path])
            for path, row in rows.items()
        }
        rows = {path: row for path, row in rows.items() if led[path] and not _is_work(exam, path, scripts[path])}
        if not rows or any(pattern("judge", "ends_itself").search(scripts[path]) for path in rows):
            continue
        first, last = ({path: _failing(row[at], led[path]) for path, row in rows.items()} for at in ("first", "last"))
        asked = replace(check, command=f"set -o pipefail; {check.command}") if "|" in check.command else check
        base, tree = exam.subject.base, exam.subject.tree
        to_the_end = exam.site.beside(asked, base, tree, last)
        if not to_the_end.ended.ok or exam.site.beside(asked, base, tree, first).ended.ok:
            continue
        if not exam.site.beside(asked, base, None, last).ended.ok:
            path = next(iter(rows))
            says = f"With {led[path][0]} in it, `{check.command}` does not come to the end of {path}."
            yield found("deaf-check", led[path][0], says=says)
            return


def _is_work(exam: Exam, path: str, text: str) -> bool:
    """Whether a script is what the task brings, and judges nothing: a program that a check starts, which ends as it likes."""
    brought = any(one.path == path for one in exam.changes) and (exam.names(path) or not exam.task.files)
    return brought and pattern("judge", "judges").search(text) is None


def _failing(form: str, changed: Sequence[str]) -> Rewritten:
    """Return how a script is written so that it fails on purpose; the line that names its interpreter stays the first."""

    def rewritten(text: str) -> str:
        head, _, rest = text.partition("\n") if text.startswith("#!") else ("", "", text)
        launches = pattern("judge", "judges").search(rest) is None
        filled = {
            "{changed}": repr([*changed]),
            "{launches}": repr(launches),
            "{quoted}": json.dumps(rest, ensure_ascii=False),
        }
        whole = re.sub(r"\{(?:changed|launches|quoted)\}", lambda found: filled[found[0]], form)
        return f"{head}{whole.replace('{text}', rest) if '{text}' in form else whole}"

    return rewritten


def _can_end(exam: Exam, row: Mapping[str, str], text: str, ending: Sequence[str]) -> list[str]:
    """Return those of the files whose code may run in the process of a script: a shell runs only what it takes in."""
    known_apart = pattern("judge", "written_in")
    some = [path for path in ending if _ends(path, row["kin"]) or not known_apart.search(path)]
    taken = _taken_in(exam, text) if some and row["ending"] == "sh" else None
    return [path for path in some if taken is None or path.rpartition("/")[2] in taken]


def _taken_in(exam: Exam, text: str) -> set[str] | None:
    """Return the names of all that a script of the shell's takes in, through others as well; None where nobody can tell."""
    files = exam.kit.workspace.files(exam.subject.tree)
    names: set[str] = set()
    todo = [text]
    while todo:
        fresh = {word.rpartition("/")[2] for word in pattern("judge", "sources").findall(todo.pop())} - names
        if any({*name} & {*"$*?`"} for name in fresh):
            return None
        names |= fresh
        todo += _texts(exam, [path for path in files if path.rpartition("/")[2] in fresh]).values()
    return names


def _scripts(exam: Exam, check: Check) -> dict[str, str]:
    """Return the files of the tree that a check names, with their texts."""
    files = exam.kit.workspace.files(exam.subject.tree)
    named = (word.strip("'\"").removeprefix("./") for word in check.command.split())
    return _texts(exam, [path for path in named if path in files])


def _texts(exam: Exam, paths: Sequence[str]) -> dict[str, str]:
    """Return texts of the tree as it would land."""
    if paths:
        exam.site.stand(exam.subject.base, exam.subject.tree)
    folder = exam.kit.workspace.path(exam.site.slot)
    return {path: exam.kit.own_files.read(folder / path) or "" for path in paths}
