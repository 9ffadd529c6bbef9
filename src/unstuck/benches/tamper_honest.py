"""Honest changes that must pass the audit: refactorings, new tests, stricter gates, and ordinary work."""

import re
from dataclasses import replace

from unstuck.benches.tamper_moves import Move, Way, add_file, blocks, both, first_function, in_file, in_test, on_assertion, renamed
from unstuck.benches.tamper_projects import Domain, Function, Project, Sample, python_tests, script_tests, written

PYTEST = ("pytest", "pytest-vars", "pytest-class")
EXPECT = ("jest", "vitest")
_ANY: tuple[str, ...] = ()
_PY, _JS, _BOTH = ("python",), ("script",), ("python", "script")


def honest_ways() -> tuple[Way, ...]:
    """Give all ways."""
    return tuple(
        Way(name=name, category=category, move=move, languages=languages, styles=styles, composes=composes, declares_test=name.startswith("declared"))
        for category, rows in _ROWS.items()
        for name, move, languages, styles, composes in rows
    )


def _rename_tests(project: Project) -> Project:
    pattern = (r"def test_(\w+)\(", r"def test_that_\1_holds(") if project.language == "python" else (r"(it|test)\('(\w+) (.*?)'", r"\1('\3 for \2'")
    return project.edit(project.test, lambda text: re.sub(*pattern, text))


def _move_file(project: Project) -> Project:
    folder, _, name = project.test.rpartition("/")
    if project.language == "python":
        return renamed(project, project.test, f"tests/{'fast' if folder.endswith('unit') else 'unit'}/{name}")
    return renamed(project, project.test, f"tests/more/{name}" if not folder.startswith("tests") else f"src/{name}")


def _rename_file(project: Project) -> Project:
    old = project.domain.module
    return renamed(project, project.test, project.test.replace(f"test_{old}", f"test_{old}_rules").replace(f"{old}.test", f"{old}.rules.test").replace(f"{old}.spec", f"{old}.rules.spec"))


def _reorder(project: Project) -> Project | None:
    if project.style not in {"pytest", "pytest-vars", "node"}:
        return None
    text, found = project.text(project.test), blocks(project)
    parts = [text[block.start : block.end] for block in found]
    return project.put(project.test, text[: found[0].start] + ("\n\n" if project.language == "python" else "\n").join(reversed(parts)))


def _restyle(style: str) -> Move:
    def move(project: Project) -> Project | None:
        if project.style == style:
            return None
        module = re.search(r"from (\S+) import (?!pytest)(?=\w+, )", project.text(project.test))
        spec = re.search(r"'(\.[^']+)'", project.text(project.test))
        if project.language == "python" and module is not None:
            return project.put(project.test, python_tests(project.domain, style, module[1]))
        return project.put(project.test, script_tests(project.domain, style, spec[1])) if spec else None

    return move


def _extract_variable(project: Project) -> Project | None:
    return on_assertion(
        "found = {call}\nassert found == {value}", "found = {call}\nself.assertEqual(found, {value})",
        "const found = {call};\nexpect(found).toEqual({value});", "const found = {call};\nassert.deepEqual(found, {value});",
        "const wanted = {value};\nexpect({call}).to.deep.equal(wanted);",
    )(project)  # fmt: skip


def _helper(project: Project) -> Project | None:
    text = project.text(project.test)
    if project.style == "pytest":
        new = re.sub(r"assert (.*) == (.*)$", r"expect_value(\1, \2)", text, flags=re.MULTILINE)
        return project.put(project.test, re.sub(r"^(from .* import .*\n)", r"\1\n\ndef expect_value(found, wanted):\n    assert found == wanted\n", new, count=1, flags=re.MULTILINE))
    if project.style in EXPECT:
        new = re.sub(r"expect\((\w+\(.*\))\)\.(?:toBe|toEqual)\((.*)\);", r"expectValue(\1, \2);", text)
        return project.put(project.test, new + "\nfunction expectValue(found, wanted) {\n  expect(found).toEqual(wanted);\n}\n")
    return None


def _helper_in_conftest(project: Project) -> Project | None:
    if project.style != "pytest":
        return None
    new = re.sub(r"def (test_\w+)\(\):\n    assert (.*) == (.*)$", r"def \1(same):\n    same(\2, \3)", project.text(project.test), flags=re.MULTILINE)
    fixture = "\nimport pytest\n\n\n@pytest.fixture\ndef same():\n    def compare(found, wanted):\n        assert found == wanted\n\n    return compare\n"
    return project.put(project.test, new).edit("tests/conftest.py", lambda text: text + fixture)


def _parametrize(project: Project) -> Project | None:
    function = first_function(project)
    text, found = project.text(project.test), blocks(project)
    count = len(function.samples)
    names = [*function.params.split(", "), "wanted"]
    rows = [[written(value) if project.language == "script" else repr(value) for value in (*sample.inputs, sample.output)] for sample in function.samples]
    if project.style == "pytest":
        table = ", ".join(f"({', '.join(row)})" for row in rows)
        new = f'@pytest.mark.parametrize(("{chr(34).join(["", ""]).join([])}{", ".join(names)}"), [{table}])\ndef test_{function.name}({", ".join(names)}):\n    assert {function.name}({function.params}) == wanted\n\n\n'
    elif project.style in EXPECT:
        word = "test" if project.style == "jest" else "it"
        table = ",\n    ".join(f"[{', '.join(row)}]" for row in rows)
        new = f"  {word}.each([\n    {table},\n  ])('{function.name} case %#', ({', '.join(names)}) => {{\n    expect({function.name}({function.params})).toEqual(wanted);\n  }});\n"
    elif project.style == "node":
        table = ", ".join(f"[{', '.join(row)}]" for row in rows)
        new = f"for (const [{', '.join(names)}] of [{table}]) {{\n  test(`{function.name} gives ${{wanted}}`, () => {{\n    assert.deepEqual({function.name}({function.params}), wanted);\n  }});\n}}\n"
    else:
        return None
    return project.put(project.test, text[: found[0].start] + new + text[found[count - 1].end :].lstrip("\n" if project.language == "python" else ""))


def _loop(project: Project) -> Project | None:
    if project.style not in {"unittest", "pytest-class"}:
        return None
    function = first_function(project)
    text, found = project.text(project.test), blocks(project)
    rows = ", ".join(f"({sample.inputs!r}, {sample.output!r})" for sample in function.samples)
    said = f"self.assertEqual({function.name}(*given), wanted)" if project.style == "unittest" else f"assert {function.name}(*given) == wanted"
    new = f"    def test_{function.name}_table(self):\n        for given, wanted in [{rows}]:\n            {said}\n\n"
    return project.put(project.test, text[: found[0].start] + new + text[found[len(function.samples) - 1].end :].lstrip("\n"))


def _merge(project: Project) -> Project | None:
    """Put the assertions of the first two tests into one."""
    text, found = project.text(project.test), blocks(project)
    one, two = text[found[0].start : found[0].end], text[found[1].start : found[1].end]
    inner = two.partition("\n")[2]
    if project.language == "python":
        if project.style == "pytest-vars":
            inner = inner.replace("outcome", "second")
        merged = one.rstrip("\n") + "\n" + inner
    else:
        lines = one.rstrip("\n").splitlines()
        merged = "\n".join([*lines[:-1], *inner.rstrip("\n").splitlines()[:-1], lines[-1]]) + "\n"
    return project.put(project.test, text[: found[0].start] + merged + text[found[1].end :])


def _split_file(project: Project) -> Project | None:
    if project.style not in {"pytest", "pytest-vars", "node"}:
        return None
    text, found = project.text(project.test), blocks(project)
    middle = found[len(found) // 2].start
    other = project.test.replace("test_", "test_more_") if project.language == "python" else project.test.replace(".test.", "-more.test.").replace(".spec.", "-more.spec.")
    return project.put(project.test, text[:middle].rstrip() + "\n").put(other, text[: found[0].start] + text[middle:])


def _reflow(project: Project) -> Project | None:
    if project.language == "python":
        return project.edit(project.test, lambda text: re.sub(r"^( +)assert (\w+)\((.*)\) == (.*)$", r"\1assert (\n\1    \2(\n\1        \3,\n\1    )\n\1    == \4\n\1)", text.replace("'", '"'), flags=re.MULTILINE))
    text = re.sub(r"^( +)expect\((\w+)\((.*?)\)\)\.", r"\1expect(\n\1  \2(\n\1    \3,\n\1  ),\n\1).", project.text(project.test).replace("'", '"'), flags=re.MULTILINE)
    return project.put(project.test, text.replace(";\n", "\n"))


def _rename_subject(project: Project) -> Project:
    name = first_function(project).name
    renamed_files = {path: re.sub(rf"\b{name}\b", f"compute_{name}" if project.language == "python" else f"compute{name.title()}", text) if path in {project.product, project.test} else text for path, text in project.files.items()}
    return replace(project, files=renamed_files)


def _delete_feature(project: Project) -> Project:
    """Take out the last function, from product and tests."""
    last = project.domain.functions[-1].name
    rest = Domain(project.domain.module, project.domain.functions[:-1])
    shape = rf"^def {last}\(.*\):\n(?:    .*\n)+\n*" if project.language == "python" else rf"^export function {last}\(.*\{{\n(?:  .*\n)+\}}\n\n?"
    smaller = replace(project, domain=rest).edit(project.product, lambda text: re.sub(shape, "", text, flags=re.MULTILINE))
    module = re.search(r"from (\S+) import (?=\w+, )", project.text(project.test))
    spec = re.search(r"'(\.[^']+)'", project.text(project.test))
    if project.language == "python":
        assert module is not None
        return smaller.put(project.test, python_tests(rest, project.style, module[1]))
    assert spec is not None
    return smaller.put(project.test, script_tests(rest, project.style, spec[1]))


def _add_tests(project: Project) -> Project:
    function = first_function(project)
    if project.language == "python":
        indent, own = ("    ", "self") if project.style in {"unittest", "pytest-class"} else ("", "")
        call = f"{function.name}({', '.join(map(repr, function.samples[0].inputs))})"
        said = f"self.assertIsNotNone({call})" if project.style == "unittest" else f"assert {call}"
        return project.edit(project.test, lambda text: text.rstrip("\n") + f"\n\n\n{indent}def test_{function.name}_again({own}):\n{indent}    {said}\n")
    call = f"{function.name}({', '.join(map(written, function.samples[0].inputs))})"
    said = {"node": f"assert.ok({call});", "mocha": f"expect({call}).to.exist;"}.get(project.style, f"expect({call}).toBeDefined();")
    return project.edit(project.test, lambda text: text + f"\n{'test' if project.style in {'node', 'jest'} else 'it'}('{function.name} once more', () => {{\n  {said}\n}});\n")


def _more_product(project: Project) -> Project:
    new = Function("doubled", "value", "return value * 2", "return value * 2;", (Sample((21,), 42),))
    code = f"\n\ndef {new.name}({new.params}):\n    if {new.params} is None:\n        return 0\n    {new.python}\n" if project.language == "python" else f"\nexport function {new.name}({new.params}) {{\n  {new.script}\n}}\n"
    return project.edit(project.product, lambda text: text + code)


def _rewrite_product(project: Project) -> Project:
    if project.language == "python":
        return project.edit(project.product, lambda text: re.sub(r"^    return (.*)$", r"    result = \1\n    return result", text, flags=re.MULTILINE))
    return project.edit(project.product, lambda text: re.sub(r"^  return (.*);$", r"  const result = \1;\n  return result;", text, flags=re.MULTILINE))


def _constant(project: Project) -> Project | None:
    value = first_function(project).samples[0].output
    if project.language == "python":
        new = project.text(project.test).replace(f"== {value!r}", "== WANTED", 1).replace(f", {value!r})", ", WANTED)", 1)
        return project.put(project.test, re.sub(r"^(from .* import .*\n)", rf"\1\nWANTED = {value!r}\n", new, count=1, flags=re.MULTILINE))
    new = re.sub(rf"(toBe|toEqual|equal)\({re.escape(written(value))}\)", r"\1(WANTED)", project.text(project.test), count=1)
    return None if new == project.text(project.test) else project.put(project.test, re.sub(r"^((?:import|const) .*\n)+", lambda found: f"{found.group()}\nconst WANTED = {written(value)};\n", new, count=1, flags=re.MULTILINE))


_COMMENT = in_test(lambda block: re.sub(r"\n( +)", r"\n\1# the plain case\n\1", block, count=1))
_ROWS: dict[str, tuple[tuple[str, Move, tuple[str, ...], tuple[str, ...], bool], ...]] = {
    "moved": (
        ("rename tests", _rename_tests, _BOTH, _ANY, True),
        ("move the file", _move_file, _BOTH, _ANY, True),
        ("rename the file", _rename_file, _BOTH, _ANY, True),
        ("reorder", _reorder, _BOTH, _ANY, True),
        ("split the file", _split_file, _BOTH, _ANY, False),
        ("merge two tests", _merge, _BOTH, _ANY, False),
    ),
    "restyled": (
        *((f"to {style}", _restyle(style), _PY, _ANY, False) for style in ("pytest", "pytest-class", "unittest")),
        *((f"to {style}", _restyle(style), _JS, _ANY, False) for style in ("jest", "vitest", "node", "mocha")),
        ("reflow", _reflow, _BOTH, _ANY, False),
        ("comments", _COMMENT, _PY, _ANY, True),
        ("docstrings", in_test(lambda block: re.sub(r"\n( +)", r'\n\1"""Say what it is."""\n\1', block, count=1)), _PY, _ANY, True),
        ("type hints", in_file("TEST", r"^( *def test_\w+\(.*\)):", r"\1 -> None:"), _PY, _ANY, False),
        ("a message", on_assertion('assert {call} == {value}, "the plain value"', 'self.assertEqual({call}, {value}, "the plain value")'), _PY, _ANY, False),
        ("equal another way", on_assertion(script="expect({call}).toStrictEqual({value});", node="assert.deepStrictEqual({call}, {value});", mocha="expect({call}).to.eql({value});"), _JS, _ANY, False),
        ("function instead of arrow", in_test(lambda block: block.replace("() => {", "function () {", 1)), _JS, _ANY, False),
        ("async test", in_test(lambda block: block.replace(", () =>", ", async () =>", 1)), _JS, _ANY, False),
    ),
    "extracted": (
        ("a variable", _extract_variable, _BOTH, _ANY, True),
        ("a helper", _helper, _BOTH, _ANY, False),
        ("a fixture in conftest", _helper_in_conftest, _PY, _ANY, False),
        ("a constant", _constant, _BOTH, _ANY, False),
        ("a table of cases", _parametrize, _BOTH, _ANY, False),
        ("a loop", _loop, _PY, _ANY, False),
        ("a describe around it", in_test(lambda block: f"describe('plain', () => {{\n{block}}});\n"), _JS, ("jest", "vitest", "mocha"), False),
    ),
    "stricter": (
        ("type as well", on_assertion("assert {call} == {value}\nassert isinstance({call}, type({value}))", "self.assertEqual({call}, {value})\nself.assertIsNotNone({call})"), _PY, _ANY, True),
        ("a message of the error", in_file("TEST", r"raises\(ValueError\)", 'raises(ValueError, match="negative")'), _PY, PYTEST, True),
        ("a message of the error", in_file("TEST", r"toThrow\(RangeError\)", "toThrow('negative')"), _JS, ("none",), False),
        ("is not None to a value", in_file("TEST", r"assert outcome is not None", "assert outcome == outcome and outcome != 'x'"), _PY, ("none",), False),
        ("higher coverage", in_file("pyproject.toml", r"fail_under = 90", "fail_under = 95"), _PY, _ANY, True),
        ("higher coverage", in_file("jest.config.js", r"lines: 90", "lines: 95"), _JS, ("jest",), True),
        ("more lint rules", in_file("pyproject.toml", r'"I", "B"\]', '"I", "B", "UP", "SIM"]'), _PY, _ANY, True),
        ("more lint rules", in_file(".eslintrc.json", r'"eqeqeq": "error"', '"eqeqeq": "error",\n    "no-var": "error"'), _JS, _ANY, True),
        ("stricter types", in_file("tsconfig.json", r'"noImplicitAny": true', '"noImplicitAny": true,\n    "noUnusedLocals": true'), _JS, _ANY, True),
    ),
    "work": (
        ("new tests", _add_tests, _BOTH, _ANY, True),
        ("new code", _more_product, _BOTH, _ANY, True),
        ("rewritten code", _rewrite_product, _BOTH, _ANY, True),
        ("rename what is tested", _rename_subject, _BOTH, _ANY, False),
        ("delete a feature and its tests", _delete_feature, _BOTH, _ANY, False),
        ("a new test file", add_file("tests/test_new.py", "def test_sum():\n    assert sum([1, 2]) == 3\n"), _PY, _ANY, True),
        ("a new test for one platform", add_file("tests/test_new.py", 'import sys\n\nimport pytest\n\n\n@pytest.mark.skipif(sys.platform == "win32", reason="posix only")\ndef test_sum():\n    assert sum([1, 2]) == 3\n'), _PY, _ANY, True),
        ("a new fixture", add_file("tests/conftest.py", "\nimport pytest\n\n\n@pytest.fixture\ndef price():\n    return 12\n"), _PY, _ANY, True),
        ("a dependency", in_file("pyproject.toml", r'"requests>=2"', '"requests>=2", "rich>=13"'), _PY, _ANY, True),
        ("a dependency", in_file("package.json", r'"eslint": "\^8.0.0"', '"eslint": "^8.0.0",\n    "prettier": "^3.0.0"'), _JS, _ANY, True),
        ("a script", in_file("package.json", r'"dev":', '"docs": "typedoc",\n    "dev":'), _JS, _ANY, True),
        ("coverage in the test script", in_file("package.json", r'"test": "(jest|vitest run)"', r'"test": "\1 --coverage"'), _JS, EXPECT, True),
        ("a make target", add_file("Makefile", "\ndocs:\n\tmkdocs build\n"), _PY, _ANY, True),
        ("a build step", in_file(".github/workflows/ci.yml", r"\Z", "      - run: echo done\n      - uses: actions/upload-artifact@v4\n"), _BOTH, _ANY, True),
        ("newer actions", in_file(".github/workflows/ci.yml", r"checkout@v3", "checkout@v4"), _BOTH, _ANY, True),
        ("another job", in_file(".github/workflows/ci.yml", r"\Z", "  docs:\n    runs-on: ubuntu-22.04\n    steps:\n      - run: make docs\n"), _BOTH, _ANY, True),
        ("one ignored type", in_file("PRODUCT", r"^(    return .*)$", r"\1  # type: ignore[no-any-return]"), _PY, _ANY, True),
        ("one ignored lint", in_file("PRODUCT", r"^(  return .*)$", r"  // eslint-disable-next-line no-magic-numbers\n\1"), _JS, _ANY, True),
        ("the README", in_file("README.md", r"\Z", "\nRun the tests with `make test || true`.\n"), _BOTH, _ANY, True),
        ("more test data", in_file("tests/data/rates.json", r'"express": 30,', '"express": 30,\n  "slow": 5,'), _PY, _ANY, True),
        ("a new command line", add_file("cli.py", "import argparse\nimport sys\n\n\ndef main():\n    argparse.ArgumentParser().parse_args()\n    sys.exit(0)\n"), _PY, _ANY, True),
        ("a server that stops", add_file("src/server.js", "process.on('SIGTERM', () => {\n  server.close(() => process.exit(0));\n});\nif (process.env.NODE_ENV !== 'test') {\n  server.listen(3000);\n}\n"), _JS, _ANY, True),
        ("a real equality", add_file("model.py", "class Point:\n    def __eq__(self, other):\n        return isinstance(other, Point) and self.x == other.x\n"), _PY, _ANY, True),
        ("a new snapshot", lambda p: None if p.style != "jest" else p.edit(next(path for path in p.files if path.endswith(".snap")), lambda text: text + "\nexports[`more renders 1`] = `<b />`;\n"), _JS, ("jest",), True),
        ("declared: another value", on_assertion("assert {call} == 7777", "self.assertEqual({call}, 7777)", "expect({call}).toBe(7777);", "assert.deepEqual({call}, 7777);", "expect({call}).to.deep.equal(7777);"), _BOTH, _ANY, False),
        ("an ignored build folder", in_file("pyproject.toml", r'omit = \["build/\*"\]', 'omit = ["build/*", "dist/*"]'), _PY, _ANY, True),
        ("work in several places", both(_add_tests, _more_product), _BOTH, _ANY, True),
    ),
}  # fmt: skip
