"""Edge: Whether a run still hears: of tests that fail on purpose or expect something else, and of a script that fails at its end.

Laws: what was heard on the base and is not heard now is asked once more, alone: only then has the change made it deaf. What
was red and is green now turns red again where something else is expected, or it is a question.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from unstuck.model.verdict import Check, CheckResult, Remark
from unstuck.verify.audit.turning import asking_otherwise, expecting_otherwise
from unstuck.verify.audit.weakened_settings import is_harmless
from unstuck.verify.base_judge import bent, unnamed
from unstuck.verify.change import added_lines, found, is_judge, known, part_of, pattern
from unstuck.verify.checks import Rewritten, is_test_run, narrowed, only_looks, stands_for_another
from unstuck.verify.exam import Verification

PURPOSE = "purpose"
"""In the name of every test that fails on purpose."""
MOST = 20
"""Files that get such tests, or are told to expect something else."""
ROUNDS = 3
"""How often the tests that were not heard are asked by themselves."""
_PURPOSES = re.compile(r"fails_on_purpose_\w+")


def hears(exam: Verification) -> Iterator[Remark]:
    """Find a run of tests that no longer hears of one that fails: code of the change reaches its runner, and has bent it."""
    reaching = _reaching(exam)
    for check, result in exam.checks if reaching else ():
        if result.status == "pass" and is_test_run(check) and _is_deaf(exam, check):
            says = f"With {reaching[0]} in it, `{check.command}` does not hear of a test that fails on purpose."
            yield found("deaf-check", reaching[0], says=says)
            return


def _reaching(exam: Verification) -> list[str]:
    """List what could reach the runner of its own tests: code by its look or its name, and settings that the task names."""
    added = {
        one.path: "\n".join(line.text for line in added_lines(one)) for one in exam.changes if not is_judge(one.path)
    }
    reaching = [path for path, text in added.items() if pattern("judge", "reaches").search(text)]
    reaching += [one.path for one in exam.changes if one.old is None and stands_for_another(one.path)]
    named = [one for one in exam.playing("settings", "commands", "support") if exam.names(one.path)]
    return reaching + [one.path for one in named if not is_harmless(one)]


def _is_deaf(exam: Verification, check: Check) -> bool:
    """Whether a run does not hear of tests that fail on purpose, of which it heard on the base."""
    forms = _canaries(exam)
    if not forms:
        return False
    written = {path: _below("".join(texts)) for path, texts in forms.items()}
    before, now = (exam.site.beside(check, exam.subject.base, one, written) for one in (None, exam.subject.tree))
    heard = {test for test in before.tests if PURPOSE in test}
    return bool(heard) and (now.ended.ok or any(map(_unheard_alone(exam, check, forms), heard - {*now.tests})))


def _canaries(exam: Verification) -> Mapping[str, Sequence[str]]:
    """Return what is written below test files that the base has as well."""
    new = {one.path for one in exam.changes if one.old is None}
    tests = [
        path
        for path in exam.context.workspace.tree_files(exam.subject.tree)
        if part_of(path) == "test" and path not in new
    ]
    shown: dict[str, Sequence[str]] = {}
    for row in reversed(known()["canary"]):
        texts = _texts(exam, [path for path in tests if _ends(path, row["ending"])][:MOST])
        shown |= {path: row["forms"] for path, text in texts.items() if re.search(row.get("holds", ""), text)}
    return shown


def _below(text: str) -> Rewritten:
    return lambda old: old + text


def _ends(path: str, ending: str) -> bool:
    return re.search(rf"\.{ending}$", path) is not None


def _unheard_alone(exam: Verification, check: Check, forms: Mapping[str, Sequence[str]]) -> Callable[[str], bool]:
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


# --- tests that turned green, told to expect something else -------------------------------------------------------------


def expects(exam: Verification) -> Iterator[Remark]:
    """Find a check that turned green and stays so though its tests, or what it asserts itself, expect something else."""
    for check, result in exam.checks:
        if not result.ended.ok or result.not_meaningful_because or only_looks(check):
            continue
        tests = is_test_run(check)
        texts = {} if tests else _asserting_scripts(exam, check)
        asked = "" if tests or texts else asking_otherwise(check.command)
        before = exam.before_work(check) if tests or texts or asked else None
        if before is None or before.ended.ok:
            continue
        # Under the base's judge, where the task does not name what was done to it: then that is harmless, and deaf perhaps.
        out = unnamed(exam) if bent(exam) else []
        tree = exam.tree_of(one.path for one in exam.changes if one not in out) if out else exam.subject.tree
        if asked:
            other = exam.site.instead(replace(check, command=asked), exam.subject.base, tree, {})
            path = "it" if other.ended.ok else ""
        else:
            names = [_leaf(one) for one in before.tests]
            path = _deaf_to(exam, check, tree, texts or _red_tests(exam, check, before), names)
        if path:
            says = f"`{check.command}` was red before, and is green now whatever is expected in {path}."
            yield found("deaf-check", "" if asked else path, says=says, severity="ask")
            return


def _deaf_to(exam: Verification, check: Check, tree: str, texts: Mapping[str, str], names: Sequence[str]) -> str:
    """Return a file whose tests of these names may expect anything; those that were heard are left out and the rest is tried again."""
    asked = False
    for _ in range(ROUNDS):
        some = {path: expecting_otherwise(path, text, names) for path, text in texts.items()}
        otherwise = {path: text for path, text in some.items() if text}
        if not otherwise:
            break
        now = exam.site.instead(narrowed([check], otherwise) or check, exam.subject.base, tree, otherwise)
        if now.ended.ok:
            return next(iter(otherwise))
        asked, rest = True, [name for name in names if name not in map(_leaf, now.tests)]
        if not rest or len(rest) == len(names):
            break
        names = rest
    return next(iter(texts), "") if not asked and is_test_run(check) and _is_deaf(exam, check) else ""


def _leaf(test: str) -> str:
    """Return the name that a test has in its file."""
    return re.split(r"::| > ", test)[-1].partition("[")[0].partition(" (")[0].strip()


def _asserting_scripts(exam: Verification, check: Check) -> dict[str, str]:
    """Return the scripts that are the check, and assert something; what the work itself asserts is no judge of it."""
    changed = {one.path for one in exam.changes}
    texts = {path: text for path, text in _scripts(exam, check).items() if path not in changed}
    return {path: text for path, text in texts.items() if expecting_otherwise(path, text)}


def _red_tests(exam: Verification, check: Check, before: CheckResult) -> dict[str, str]:
    """Return the texts of the test files that were red before, or that the check names, or of some where nobody can tell."""
    tests = [path for path in exam.context.workspace.tree_files(exam.subject.tree) if part_of(path) == "test"]
    told = [path for path in tests if any(path in one for one in (check.command, *before.tests))]
    return exam.site.read((told or tests)[:MOST], exam.subject.base, exam.subject.tree)


# --- scripts -----------------------------------------------------------------------------------------------------------


def comes_to_its_end(exam: Verification) -> Iterator[Remark]:
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


def _is_work(exam: Verification, path: str, text: str) -> bool:
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


def _can_end(exam: Verification, row: Mapping[str, str], text: str, ending: Sequence[str]) -> list[str]:
    """Return those of the files whose code may run in the process of a script: a shell runs only what it takes in."""
    known_apart = pattern("judge", "written_in")
    some = [path for path in ending if _ends(path, row["kin"]) or not known_apart.search(path)]
    taken = _taken_in(exam, text) if some and row["ending"] == "sh" else None
    return [path for path in some if taken is None or path.rpartition("/")[2] in taken]


def _taken_in(exam: Verification, text: str) -> set[str] | None:
    """Return the names of all that a script of the shell's takes in, through others as well; None where nobody can tell."""
    files = exam.context.workspace.tree_files(exam.subject.tree)
    names: set[str] = set()
    todo = [text]
    while todo:
        fresh = {word.rpartition("/")[2] for word in pattern("judge", "sources").findall(todo.pop())} - names
        if any({*name} & {*"$*?`"} for name in fresh):
            return None
        names |= fresh
        todo += _texts(exam, [path for path in files if path.rpartition("/")[2] in fresh]).values()
    return names


def _scripts(exam: Verification, check: Check) -> dict[str, str]:
    """Return the files of the tree that a check names, with their texts."""
    files = exam.context.workspace.tree_files(exam.subject.tree)
    named = (word.strip("'\"").removeprefix("./") for word in check.command.split())
    return _texts(exam, [path for path in named if path in files])


def _texts(exam: Verification, paths: Sequence[str]) -> dict[str, str]:
    """Return texts of the tree as it would land."""
    return exam.site.read(paths, exam.subject.base, exam.subject.tree) if paths else {}
