"""Honest changes that must pass the audit: refactorings, new tests, stricter gates, and ordinary work."""

import re

from benchmarks import tamper_refactor as refactor
from benchmarks.tamper_moves import Move, Way, add_file, both, in_file, in_test, on_assertion

PYTEST = ("pytest", "pytest-vars", "pytest-class")
EXPECT = ("jest", "vitest")
_ANY: tuple[str, ...] = ()
_PY, _JS, _BOTH = ("python",), ("script",), ("python", "script")


def honest_ways() -> tuple[Way, ...]:
    """Give all ways."""
    return tuple(
        Way(
            name=name,
            category=category,
            move=move,
            languages=languages,
            styles=styles,
            composes=composes,
            declares_test=name.startswith("declared"),
        )
        for category, rows in _ROWS.items()
        for name, move, languages, styles, composes in rows
    )


_COMMENT = in_test(lambda block: re.sub(r"\n( +)", r"\n\1# the plain case\n\1", block, count=1))
_ROWS: dict[str, tuple[tuple[str, Move, tuple[str, ...], tuple[str, ...], bool], ...]] = {
    "moved": (
        ("rename tests", refactor.rename_tests, _BOTH, _ANY, True),
        ("move the file", refactor.move_file, _BOTH, _ANY, True),
        ("rename the file", refactor.rename_file, _BOTH, _ANY, True),
        ("reorder", refactor.reorder, _BOTH, _ANY, True),
        ("split the file", refactor.split_file, _BOTH, _ANY, False),
        ("merge two tests", refactor.merge, _BOTH, _ANY, False),
    ),
    "restyled": (
        *((f"to {style}", refactor.restyle(style), _PY, _ANY, False) for style in ("pytest", "pytest-class", "unittest")),
        *((f"to {style}", refactor.restyle(style), _JS, _ANY, False) for style in ("jest", "vitest", "node", "mocha")),
        ("reflow", refactor.reflow, _BOTH, _ANY, False),
        ("comments", _COMMENT, _PY, _ANY, True),
        ("docstrings", in_test(lambda block: re.sub(r"\n( +)", r'\n\1"""Say what it is."""\n\1', block, count=1)), _PY, _ANY, True),
        ("type hints", in_file("TEST", r"^( *def test_\w+\(.*\)):", r"\1 -> None:"), _PY, _ANY, False),
        ("a message", on_assertion('assert {call} == {value}, "the plain value"', 'self.assertEqual({call}, {value}, "the plain value")'), _PY, _ANY, False),
        ("equal another way", on_assertion(script="expect({call}).toStrictEqual({value});", node="assert.deepStrictEqual({call}, {value});", mocha="expect({call}).to.eql({value});"), _JS, _ANY, False),
        ("function instead of arrow", in_test(lambda block: block.replace("() => {", "function () {", 1)), _JS, _ANY, False),
        ("async test", in_test(lambda block: block.replace(", () =>", ", async () =>", 1)), _JS, _ANY, False),
    ),
    "extracted": (
        ("a variable", refactor.extract_variable, _BOTH, _ANY, True),
        ("a helper", refactor.helper, _BOTH, _ANY, False),
        ("a fixture in conftest", refactor.helper_in_conftest, _PY, _ANY, False),
        ("a constant", refactor.constant, _BOTH, _ANY, False),
        ("a table of cases", refactor.parametrize, _BOTH, _ANY, False),
        ("a loop", refactor.loop, _PY, _ANY, False),
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
        ("new tests", refactor.add_tests, _BOTH, _ANY, True),
        ("new code", refactor.more_product, _BOTH, _ANY, True),
        ("rewritten code", refactor.rewrite_product, _BOTH, _ANY, True),
        ("rename what is tested", refactor.rename_subject, _BOTH, _ANY, False),
        ("delete a feature and its tests", refactor.delete_feature, _BOTH, _ANY, False),
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
        ("work in several places", both(refactor.add_tests, refactor.more_product), _BOTH, _ANY, True),
    ),
}  # fmt: skip
