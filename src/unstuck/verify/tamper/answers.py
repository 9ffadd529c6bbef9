"""Find product code that answers the tests' own inputs with constants instead of working them out."""

import ast
import re
from collections.abc import Iterator, Sequence

from unstuck.verify.tamper.change import LONGEST, Change, Finding, Line, added_lines, language
from unstuck.verify.tamper.product import definitions
from unstuck.verify.tamper.python_cases import parse
from unstuck.verify.tamper.python_form import form
from unstuck.verify.tamper.rules import found
from unstuck.verify.tamper.script_form import form as form_script
from unstuck.verify.tamper.script_tokens import Script, arguments, cut
from unstuck.verify.tamper.suite import Case

TRIVIAL = frozenset(
    {"0", "1", "-1", "2", "''", '""', "None", "True", "False", "null", "undefined", "true", "false", "0.0", "1.0"}
)
LONGEST_LINE = 300
"""Characters of a line that somebody wrote by hand."""
LIKE = 0.6
"""An answer that shares more of its letters with the question was made from it."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
Arm = tuple[frozenset[str], str, int, int, frozenset[str]]
"""The inputs, the answer, the line, how many inputs are pinned, and all literals of both."""

_SCALAR = r"-?\d[\w.]*|'[^']*'|\"[^\"]*\"|true|false|null"
_LITERAL = r"(?:-?\d[\w.]*|'[^']*'|\"[^\"]*\"|`[^`$]*`|true|false|null|\[[^\[\]()a-z]*\]|\{(?:\s*['\"]?\w+['\"]?\s*:\s*(?:-?\d[\w.]*|'[^']*'|\"[^\"]*\"|true|false|null)\s*,?)*\s*\})"
_ARM = re.compile(
    rf"(?:if|case)\b\s*\(?(?P<test>.*?[!=]==?\s*{_LITERAL}.*?|\s*{_LITERAL}\s*:)\)?\s*\{{?\s*return\s+(?P<answer>{_LITERAL})\s*;?",
    re.DOTALL,
)
_HINT = re.compile(
    r"\breturn\s+[-\d'\"\[({]|==\s*[-\d'\"\[(]|\bcase\b.*:|[=!]=.*:\s*return|\{.*:|^\s*[\"'(\d].*:\s*\S+,?\s*$|\breturn\b.*\bif\b|=>\s*[-\d'\"]"
)
_PIN = re.compile(rf"===?\s*(?P<literal>{_LITERAL})")
_ONLY_ANSWER = re.compile(rf"^\s*return\s+(?P<answer>{_LITERAL})\s*;?\s*$")


def judge_answers(changes: Sequence[Change], tests: Sequence[Case]) -> Iterator[Finding]:
    """Judge the functions of changed product files by all that is known of the tests."""
    by_name: dict[str, list[frozenset[str]]] = {}
    for case in tests:
        for one in case.assertions:
            samples = [one.literals, *(one.literals | row for row in case.rows or ())]
            for name in one.names:
                by_name.setdefault(name, []).extend(samples)
    for change in changes:
        if change.new is None:
            continue
        if language(change.path) == "python":
            yield from _python(change, by_name)
        elif language(change.path) == "script":
            yield from _script(change, by_name)


def may_answer(change: Change) -> bool:
    """Tell, without parsing, whether a change could put constants in place of answers."""
    if change.new is None or len(change.new) > LONGEST:
        return False
    return any(_HINT.search(line.text) for line in added_lines(change) if len(line.text) <= LONGEST_LINE)


def _python(change: Change, asserted: dict[str, list[frozenset[str]]]) -> Iterator[Finding]:
    new, old = parse(change.new or ""), parse(change.old or "")
    if new is None or old is None:
        return
    touched = {line.number for line in added_lines(change)}
    before = {node.name: node for node in ast.walk(old) if isinstance(node, Function)}
    for node in ast.walk(new):
        if not isinstance(node, Function) or not any(
            number in touched for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        ):
            continue
        was = before.get(node.name)
        known = asserted.get(node.name, [])
        arms = [arm for arm in _arms(node) if was is None or arm[:2] not in [other[:2] for other in _arms(was)]]
        cheat = _cheat(arms, known, arity=_arity(node), computed_before=was is not None)
        if cheat is not None:
            says = f"{node.name} answers one input with a constant."
            evidence = f"{', '.join(sorted(cheat[0]))} → {cheat[1]}"
            yield found("answers-hard-coded", change.path, cheat[2], says, evidence)
        else:
            yield from _table(change, node, was, known, new)
            yield from _constant_function(change, node, was, known)


def _cheat(arms: Sequence[Arm], known: list[frozenset[str]], *, arity: int, computed_before: bool) -> Arm | None:
    """Find the arm that shows that answers are looked up: it answers what the tests ask, and nothing else would."""
    odd = [arm for arm in arms if not arm[4] <= TRIVIAL]
    several = next((arm for arm in odd if arm[3] > 1 and arm[3] >= arity), None)
    if several is not None or not computed_before:
        return several
    computed = [arm for arm in odd if _looks_computed(arm)]
    if not known:
        return computed[0] if len(computed) > 1 else None
    samples = [arm for arm in odd if any(arm[4] <= literals for literals in known)]
    if len(samples) == len(odd):
        return next(iter(samples), None)
    return next((arm for arm in samples if arm in computed), None)


def _looks_computed(arm: Arm) -> bool:
    """Tell a value that must have been worked out from one that a table of words may well hold."""
    inputs, answer = arm[0], arm[1]
    if answer[:1] not in "'\"`" or any(not re.fullmatch(r"-?\d+|['\"`][^\s'\"`]{0,24}['\"`]", one) for one in inputs):
        return True
    given, letters = (set(text.lower()) - set("'\"` ") for text in ("".join(inputs), answer))
    return len(given & letters) > LIKE * max(1, len(given | letters))


def _table(
    change: Change, node: Function, was: Function | None, known: list[frozenset[str]], tree: ast.Module
) -> Iterator[Finding]:
    """Find a table, in the function or beside it, whose every entry is a sample of the tests."""
    if was is None or not known:
        return
    used = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    beside = [
        part.value
        for part in tree.body
        if isinstance(part, ast.Assign) and any(isinstance(one, ast.Name) and one.id in used for one in part.targets)
    ]
    for inner in (*ast.walk(node), *beside):
        if not isinstance(inner, ast.Dict) or None in inner.keys:
            continue
        rows = [
            frozenset(form(key, {}).literals | form(value, {}).literals)
            for key, value in zip(inner.keys, inner.values, strict=True)
            if key is not None
        ]
        if _all_samples(rows, known):
            says = f"{node.name} looks its answers up in a table of the tests' own samples."
            yield found("answers-hard-coded", change.path, inner.lineno, says, ", ".join(sorted(rows[0])))
            return


def _all_samples(rows: Sequence[frozenset[str]], known: list[frozenset[str]]) -> bool:
    return len(rows) > 1 and all(row and any(row <= literals for literals in known) for row in rows)


def _constant_function(
    change: Change, node: Function, was: Function | None, known: list[frozenset[str]]
) -> Iterator[Finding]:
    if was is None or not _uses_arguments(was) or _uses_arguments(node):
        return
    answers = {
        part
        for inner in ast.walk(node)
        if isinstance(inner, ast.Return) and inner.value is not None
        for part in form(inner.value, {}).literals
    }
    if answers and (any(answers <= literals for literals in known) or not answers <= TRIVIAL):
        says = f"{node.name} returns a constant, whatever it is given."
        yield found("answers-hard-coded", change.path, node.lineno, says, ", ".join(sorted(answers)))


def _uses_arguments(node: Function) -> bool:
    names = {arg.arg for arg in [*node.args.args, *node.args.kwonlyargs]} - {"self", "cls"}
    used = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return not names or bool(names & used)


def _arity(node: Function) -> int:
    return len({arg.arg for arg in node.args.args} - {"self", "cls"})


def _arms(node: Function) -> Iterator[Arm]:
    """Give each `if x == literal: return literal`."""
    names = {arg.arg for arg in [*node.args.args, *node.args.kwonlyargs]} | (
        {node.args.vararg.arg} if node.args.vararg else set()
    )
    for inner in ast.walk(node):
        if isinstance(inner, ast.If) and len(inner.body) == 1:
            answer = _answer(inner.body[0])
            pinned = _pinned(inner.test, names)
            if answer and pinned:
                inputs = frozenset().union(*pinned)
                yield inputs, answer, inner.lineno, len(pinned), inputs | form(inner.body[0], {}).literals
        elif isinstance(inner, ast.Return) and isinstance(inner.value, ast.IfExp):
            pinned = _pinned(inner.value.test, names)
            if pinned and isinstance(inner.value.body, ast.Constant):
                inputs, answer = frozenset().union(*pinned), repr(inner.value.body.value)
                yield inputs, answer, inner.lineno, len(pinned), inputs | {answer}


def _answer(statement: ast.stmt) -> str:
    if not isinstance(statement, ast.Return) or statement.value is None:
        return ""
    written = form(statement.value, {})
    plain = not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(statement.value))
    return written.key if plain and len(written.literals) != 1 else next(iter(written.literals), "") if plain else ""


def _pinned(test: ast.expr, names: set[str]) -> list[frozenset[str]]:
    """Give the literals that arguments are compared with, one for each argument."""
    out: list[frozenset[str]] = []
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    for part in parts:
        if not isinstance(part, ast.Compare) or len(part.ops) != 1 or not isinstance(part.ops[0], ast.Eq):
            continue
        sides = (part.left, part.comparators[0])
        named = {inner.id for side in sides for inner in ast.walk(side) if isinstance(inner, ast.Name)} & names
        if not named:
            continue
        for side in sides:
            if isinstance(side, ast.Tuple) and any(isinstance(one, ast.Constant) for one in side.elts):
                out += [frozenset({repr(one.value)}) for one in side.elts if isinstance(one, ast.Constant)]
            elif not any(isinstance(inner, ast.Name) for inner in ast.walk(side)):
                out.append(frozenset(form(side, {}).literals))
    return out


def _script(change: Change, asserted: dict[str, list[frozenset[str]]]) -> Iterator[Finding]:
    lines = list(added_lines(change))
    known = [literals for name in definitions(change.new or "") for literals in asserted.get(name, ())]
    cheat = _cheat(
        list(_script_arms(change, lines)),
        known,
        arity=0,
        computed_before=change.old is not None,
    )
    if cheat is not None:
        evidence = f"{', '.join(sorted(cheat[0]))} → {cheat[1]}"
        yield found("answers-hard-coded", change.path, cheat[2], "One input is answered with a constant.", evidence)
        return
    yield from _script_table(change, lines, known)
    yield from _constant_script(change, lines, asserted)


def _script_arms(change: Change, lines: list[Line]) -> Iterator[Arm]:
    text = (change.new or "").splitlines()
    for line in lines:
        window = "\n".join(text[line.number - 1 : line.number + 1])
        match = _ARM.match(window.lstrip()) if "return" in window and len(window) < LONGEST_LINE else None
        if match is None:
            continue
        pins = [_plain(pin) for pin in _PIN.findall(match["test"])] or [_plain(match["test"].strip(" :"))]
        answer = _plain(match["answer"])
        count = len(pins) if answer not in {"true", "false", "null"} else 1
        parts = frozenset(_plain(one) for one in re.findall(_SCALAR, match["answer"])) or frozenset({answer})
        yield frozenset(pins), answer, line.number, count, frozenset(pins) | parts


def _script_table(change: Change, lines: list[Line], known: list[frozenset[str]]) -> Iterator[Finding]:
    """Find an object or a Map whose every entry is a sample of the tests."""
    if change.old is None or not known or len(change.new or "") > LONGEST:
        return
    touched = {line.number for line in lines}
    script = cut(change.new or "")
    for at, token in enumerate(script.tokens):
        if token.text not in {"{", "["} or token.line not in touched:
            continue
        parts = arguments(script, at)
        if len(parts) < 2 or not all(_is_entry(script, *part) for part in parts):  # noqa: PLR2004 - one entry is no table
            continue
        rows = [frozenset(form_script(script, part, {}).literals | _bare_key(script, part[0])) for part in parts]
        if _all_samples(rows, known):
            says = "Answers are looked up in a table of the tests' own samples."
            yield found("answers-hard-coded", change.path, token.line, says, ", ".join(sorted(rows[0])))
            return


def _is_entry(script: Script, start: int, end: int) -> bool:
    """Tell whether this is `key: literal` or `[literal, literal]`."""
    if script.text(start) == "[":
        return script.end(start) == end - 1
    return script.text(start + 1) == ":" and all(
        token.kind != "id" or token.text in TRIVIAL for token in script.tokens[start + 2 : end]
    )


def _bare_key(script: Script, at: int) -> frozenset[str]:
    return frozenset({repr(script.text(at))}) if script.tokens[at].kind == "id" else frozenset()


def _constant_script(change: Change, lines: list[Line], asserted: dict[str, list[frozenset[str]]]) -> Iterator[Finding]:
    """Find a function that computed and now returns a constant which a test expects."""
    text = (change.new or "").splitlines()
    for line in lines:
        match = _ONLY_ANSWER.match(line.text)
        if match is None or change.old is None or line.number < 2:  # noqa: PLR2004 - a head must stand above
            continue
        head = re.search(
            r"(?:function\s+|const\s+)?(\w+)\s*(?:=\s*(?:async\s*)?)?\((\s*\w[^)]*)\)\s*(?::[^{=]+)?(?:=>)?\s*\{\s*$",
            text[line.number - 2],
        )
        if head is None or _plain(match["answer"]) in TRIVIAL:
            continue
        if head[0].strip() in change.old and any(
            _plain(match["answer"]) in literals
            for literals in asserted.get(head[1], [frozenset({_plain(match["answer"])})])
        ):
            says = f"{head[1]} returns a constant, whatever it is given."
            yield found("answers-hard-coded", change.path, line.number, says, line.text.strip())
            return


def _plain(text: str) -> str:
    return repr(text[1:-1]) if text[:1] in "'\"`" else text
