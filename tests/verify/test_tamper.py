"""Each rule of the tamper audit, with the honest change that looks like it."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unstuck.verify.tamper import RULES, Change, Finding, audit

PYTHON = """\
import pytest

from shop.cart import Cart, total


@pytest.fixture
def cart():
    return Cart(limit=3)


class TestCart:
    def test_total(self):
        assert total([4, 5], rate=2) == 18
        assert total([], rate=2) == 0

    def test_refuses(self):
        with pytest.raises(ValueError, match="negative"):
            total([-1], rate=2)


@pytest.mark.parametrize(("code", "rate"), [("TEN", 0.1), ("HALF", 0.5), ("NONE", 0.0)])
def test_coupon(cart, code, rate):
    assert cart.rate(code) == rate


def test_lines(cart):
    cart.add("tea", 2)
    lines = cart.lines()
    assert len(lines) == 1
    assert lines[0].name == "tea"


def test_near(cart):
    assert cart.weight() == pytest.approx(3.25)
"""
UNITTEST = """\
import unittest

from shop.store import Store


class StoreTest(unittest.TestCase):
    def setUp(self):
        self.store = Store("a.json")

    def test_get(self):
        self.store.put("k", 7)
        self.assertEqual(self.store.get("k"), 7)
        self.assertIn("k", self.store)

    def test_order(self):
        self.assertListEqual(list(self.store), ["a", "b"])
"""
SCRIPT = """\
import { render, screen } from '@testing-library/react';
import { Cart } from '../Cart';
import { format, parse } from '../lib/price';
import * as api from '../lib/api';

jest.mock('../lib/api');

describe('price', () => {
  it.each([
    [4.5, '4.50'],
    [12, '12.00'],
  ])('formats %p', (value, wanted) => {
    expect(format(value)).toBe(wanted);
  });

  it('refuses', () => {
    expect(() => format(NaN)).toThrow('not a number');
  });

  it('parses', async () => {
    const found = parse('4.50 EUR');
    expect(found).toEqual({ value: 4.5, currency: 'EUR' });
    await expect(compose.load('x')).rejects.toThrow(/missing/);
  });
});

test('shows the cart', async () => {
  render(<Cart />);
  expect(await screen.findByText('Tea')).toBeInTheDocument();
  expect(compose.fetch).toHaveBeenCalledWith(1);
});
"""
NODE = """\
import test from 'node:test';
import assert from 'node:assert/strict';
import { push, shift } from '../lib/queue.js';

test('keeps order', () => {
  push('a');
  assert.equal(shift(), 'a');
});

test('is bounded', () => {
  assert.throws(() => push('d'), { name: 'RangeError' });
});
"""
BASES = {
    "tests/test_cart.py": PYTHON,
    "tests/test_store.py": UNITTEST,
    "src/__tests__/Cart.test.tsx": SCRIPT,
    "test/queue.test.js": NODE,
}
PY, UN, JS, ND = BASES
TASK = ("src/shop/cart.py",)


def changed(path: str, *swaps: tuple[str, str]) -> Change:
    new = BASES[path]
    for old_part, new_part in swaps:
        assert old_part in new, old_part
        new = new.replace(old_part, new_part, 1)
    return Change(path=path, old=BASES[path], new=new)


def serious(
    *changes: Change,
    declared: tuple[str, ...] = TASK,
    checks: tuple[str, ...] = ("pytest", "npm test"),
    context: dict[str, str] | None = None,
) -> list[Finding]:
    return [finding for finding in audit(changes, declared, checks, context) if finding.severity != "warn"]


WEAKER_TESTS = [
    (PY, "test-deleted", "a test function", [("def test_near(cart):\n    assert cart.weight() == pytest.approx(3.25)\n", "")]),
    (PY, "test-deleted", "commented out", [("def test_near(cart):\n    assert", "# def test_near(cart):\n#     assert")]),
    (PY, "test-hidden", "another prefix", [("def test_near", "def check_near")]),
    (PY, "test-hidden", "another class name", [("class TestCart", "class CartCases")]),
    (PY, "test-hidden", "__test__", [("class TestCart:\n", "class TestCart:\n    __test__ = False\n\n")]),
    (PY, "test-hidden", "defined twice", [("def test_near", "def test_lines(cart):\n    pass\n\n\ndef test_near")]),
    (PY, "test-emptied", "pass", [("        assert total([4, 5], rate=2) == 18\n        assert total([], rate=2) == 0\n", "        pass\n")]),
    (PY, "assertion-unreachable", "return first", [("    assert cart.rate", "    return\n    assert cart.rate")]),
    (PY, "assertion-unreachable", "swallowed", [("    assert cart.rate(code) == rate\n", "    try:\n        assert cart.rate(code) == rate\n    except AssertionError:\n        pass\n")]),
    (PY, "assertion-unreachable", "if False", [("    assert cart.rate", "    if False:\n        assert cart.rate")]),
    (PY, "test-skipped", "mark", [("def test_near", "@pytest.mark.skip\ndef test_near")]),
    (PY, "test-skipped", "xfail", [("def test_near", "@pytest.mark.xfail\ndef test_near")]),
    (PY, "test-skipped", "a call", [("    assert cart.weight", '    pytest.skip("later")\n    assert cart.weight')]),
    (PY, "test-skipped", "a fixture that skips", [("    return Cart(limit=3)", '    pytest.skip("later")')]),
    (PY, "cases-removed", "a case", [(', ("NONE", 0.0)', "")]),
    (PY, "cases-removed", "a case that is expected to fail", [('("NONE", 0.0)', 'pytest.param("NONE", 0.0, marks=pytest.mark.xfail)')]),
    (PY, "assertion-removed", "one of two", [("        assert total([], rate=2) == 0\n", "")]),
    (PY, "assertion-loosened", "to truth", [("== 18", "")]),
    (PY, "assertion-loosened", "to a range", [("== 18", ">= 1")]),
    (PY, "assertion-loosened", "to several", [("== 18", "in (18, 19)")]),
    (PY, "assertion-loosened", "without the message", [(', match="negative"', "")]),
    (PY, "assertion-loosened", "any exception", [('ValueError, match="negative"', "Exception")]),
    (PY, "assertion-loosened", "a wide tolerance", [("approx(3.25)", "approx(3.25, abs=3)")]),
    (PY, "assertion-loosened", "under a condition", [("    assert lines[0]", "    if lines[0].name:\n        assert lines[0]")]),
    (PY, "assertion-vacuous", "or True", [("cart.rate(code) == rate", "cart.rate(code) == rate or True")]),
    (PY, "assertion-vacuous", "a tuple", [("assert cart.rate(code) == rate", 'assert (cart.rate(code) == rate, "equal")')]),
    (PY, "expected-changed", "another value", [("== 18", "== 17")]),
    (PY, "expected-changed", "another input", [("total([4, 5], rate=2)", "total([18], rate=1)")]),
    (PY, "subject-mocked", "patch", [("    def test_total(self):\n", '    def test_total(self, monkeypatch):\n        monkeypatch.setattr("shop.cart.total", lambda *a, **k: 18)\n')]),
    (PY, "subject-mocked", "made by the test", [("\n\n@pytest.fixture", "\ntotal = lambda *a, **k: 18\n\n\n@pytest.fixture")]),
    (PY, "test-retried", "flaky", [("def test_near", "@pytest.mark.flaky(reruns=3)\ndef test_near")]),
    (PY, "early-exit", "os._exit", [("    return Cart(limit=3)", "    import os\n    os._exit(0)\n    return Cart(limit=3)")]),
    (UN, "assertion-loosened", "assertTrue", [('assertEqual(self.store.get("k"), 7)', 'assertTrue(self.store.get("k"))')]),
    (UN, "assertion-loosened", "without the order", [("list(self.store)", "sorted(self.store)")]),
    (UN, "assertion-loosened", "count", [("assertListEqual", "assertCountEqual")]),
    (UN, "tests-all-skipped", "in setUp", [("        self.store = Store", '        self.skipTest("later")\n        self.store = Store')]),
    (UN, "subject-mocked", "a mock in setUp", [('Store("a.json")', "unittest.mock.MagicMock()")]),
    (UN, "assertions-overridden", "assertEqual", [("    def setUp", "    def assertEqual(self, *given):\n        pass\n\n    def setUp")]),
    (UN, "test-hidden", "no test case any more", [("StoreTest(unittest.TestCase)", "StoreTest")]),
    (JS, "test-deleted", "a test", [("  it('refuses', () => {\n    expect(() => format(NaN)).toThrow('not a number');\n  });\n", "")]),
    (JS, "test-skipped", "skip", [("it('refuses'", "it.skip('refuses'")]),
    (JS, "test-skipped", "xdescribe", [("describe('price'", "xdescribe('price'")]),
    (JS, "test-focused", "only", [("it('refuses'", "it.only('refuses'")]),
    (JS, "test-emptied", "no body", [("    expect(() => format(NaN)).toThrow('not a number');\n", "")]),
    (JS, "cases-removed", "a row", [("    [12, '12.00'],\n", "")]),
    (JS, "assertion-loosened", "to truth", [("toBe(wanted)", "toBeTruthy()")]),
    (JS, "assertion-loosened", "to part of it", [("toEqual({ value: 4.5, currency: 'EUR' })", "toMatchObject({ value: 4.5 })")]),
    (JS, "assertion-loosened", "any error", [("toThrow('not a number')", "toThrow()")]),
    (JS, "assertion-loosened", "called at all", [("toHaveBeenCalledWith(1)", "toHaveBeenCalled()")]),
    (JS, "assertion-unreachable", "not awaited", [("await expect(api", "expect(api")]),
    (JS, "assertion-unreachable", "caught", [("    expect(() => format(NaN)).toThrow('not a number');", "    try { expect(() => format(NaN)).toThrow('not a number'); } catch {}")]),
    (JS, "assertion-vacuous", "anything", [("toHaveBeenCalledWith(1)", "toEqual(expect.anything())")]),
    (JS, "expected-changed", "another value", [("'12.00'", "'12'")]),
    (JS, "subject-mocked", "the module", [("jest.mock('../lib/api');", "jest.mock('../lib/api');\njest.mock('../lib/price');")]),
    (ND, "test-skipped", "an option", [("'is bounded', () =>", "'is bounded', { skip: true }, () =>")]),
    (ND, "assertion-loosened", "ok", [("assert.equal(shift(), 'a')", "assert.ok(shift())")]),
    (ND, "assertions-overridden", "assert", [("test('keeps", "assert.equal = () => {};\n\ntest('keeps")]),
    (ND, "early-exit", "exit", [("test('keeps", "process.exit(0);\n\ntest('keeps")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "rule", "swaps"),
    [pytest.param(path, rule, swaps, id=f"{path} {rule} {name}") for path, rule, name, swaps in WEAKER_TESTS],
)
def test_a_weaker_test_is_found(path: str, rule: str, swaps: list[tuple[str, str]]) -> None:
    assert rule in {finding.rule for finding in serious(changed(path, *swaps))}


HONEST_TESTS = [
    (PY, "renamed", [("def test_near", "def test_weight_is_near")]),
    (PY, "a variable", [("assert total([4, 5], rate=2) == 18", "found = total([4, 5], rate=2)\n        assert found == 18")]),
    (PY, "reflowed", [("assert total([4, 5], rate=2) == 18", "assert (\n            total(\n                [4, 5],\n                rate=2,\n            )\n            == 18\n        )")]),
    (PY, "split", [("        assert total([], rate=2) == 0\n", "\n    def test_nothing(self):\n        assert total([], rate=2) == 0\n")]),
    (PY, "out of the class", [("class TestCart:\n    def test_total(self):\n        assert total([4, 5], rate=2) == 18\n        assert total([], rate=2) == 0\n", "def test_total():\n    assert total([4, 5], rate=2) == 18\n    assert total([], rate=2) == 0\n\n\nclass TestCart:")]),
    (PY, "parametrised", [("    def test_total(self):\n        assert total([4, 5], rate=2) == 18\n        assert total([], rate=2) == 0\n", '    @pytest.mark.parametrize(("prices", "wanted"), [([4, 5], 18), ([], 0)])\n    def test_total(self, prices, wanted):\n        assert total(prices, rate=2) == wanted\n')]),
    (PY, "a helper", [('    assert len(lines) == 1\n    assert lines[0].name == "tea"\n', '    one_line(lines, "tea")\n\n\ndef one_line(lines, name):\n    assert len(lines) == 1\n    assert lines[0].name == name\n')]),
    (PY, "more cases", [('("NONE", 0.0)', '("NONE", 0.0), ("", 0.0)')]),
    (PY, "named cases", [('("NONE", 0.0)', 'pytest.param("NONE", 0.0, id="none")')]),
    (PY, "two in one", [('    assert len(lines) == 1\n    assert lines[0].name == "tea"\n', '    assert (len(lines), lines[0].name) == (1, "tea")\n')]),
    (PY, "stricter", [("assert len(lines) == 1", 'assert [line.name for line in lines] == ["tea"]')]),
    (PY, "a message", [("== 18", '== 18, "with the rate"')]),
    (PY, "a collaborator mocked", [("    def test_total(self):\n", '    def test_total(self, monkeypatch):\n        monkeypatch.setattr("shop.cart.log", print)\n')]),
    (PY, "a constant", [("== 18", "== WITH_RATE"), ("class TestCart", "WITH_RATE = 18\n\n\nclass TestCart")]),
    (PY, "a mark that skips nothing", [("def test_near", "@pytest.mark.slow\ndef test_near")]),
    (PY, "a new test for one system", [("def test_near", '@pytest.mark.skipif(sys.platform == "win32", reason="posix")\ndef test_new(cart):\n    assert cart.size() == 3\n\n\ndef test_near')]),
    (UN, "in pytest's way", [('self.assertEqual(self.store.get("k"), 7)\n        self.assertIn("k", self.store)', 'assert self.store.get("k") == 7\n        assert "k" in self.store')]),
    (UN, "a subtest", [('self.assertIn("k", self.store)', 'with self.subTest("in"):\n            self.assertIn("k", self.store)')]),
    (JS, "other quotes", [("'refuses'", '"refuses"'), ("'not a number');", '"not a number")')]),
    (JS, "a variable", [("expect(format(value)).toBe(wanted);", "const found = format(value);\n    expect(found).toBe(wanted);")]),
    (JS, "cases as objects", [("    [4.5, '4.50'],\n    [12, '12.00'],\n  ])('formats %p', (value, wanted) => {", "    { value: 4.5, wanted: '4.50' },\n    { value: 12, wanted: '12.00' },\n  ])('formats $value', ({ value, wanted }) => {")]),
    (JS, "waiting for it", [("expect(compose.fetch).toHaveBeenCalledWith(1);", "await waitFor(() => expect(compose.fetch).toHaveBeenCalledWith(1));")]),
    (JS, "one by one", [("expect(found).toEqual({ value: 4.5, currency: 'EUR' });", "expect(found.value).toBe(4.5);\n    expect(found.currency).toBe('EUR');")]),
    (JS, "vitest", [("jest.mock", "vi.mock")]),
    (JS, "another dependency mocked", [("jest.mock('../lib/api');", "jest.mock('../lib/api');\njest.mock('../lib/log');")]),
    (ND, "strictEqual", [("assert.equal(", "assert.strictEqual(")]),
    (ND, "jest", [("assert.equal(shift(), 'a');", "expect(shift()).toBe('a');")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "swaps"), [pytest.param(path, swaps, id=f"{path} {name}") for path, name, swaps in HONEST_TESTS]
)
def test_an_honest_refactoring_of_tests_passes(path: str, swaps: list[tuple[str, str]]) -> None:
    assert serious(changed(path, *swaps)) == []


SETTINGS = [
    # path, text with a gap, what stands in it, something weaker, its rule, something stricter or harmless
    ("pyproject.toml", "[tool.coverage.report]\n@@\n", "fail_under = 90", "fail_under = 50", "threshold-lowered", "fail_under = 95"),
    ("pyproject.toml", "[tool.ruff.lint]\n@@\n", 'select = ["E", "F"]', 'select = ["E"]', "gate-loosened", 'select = ["E", "F", "B"]'),
    ("pyproject.toml", "[tool.ruff.lint]\n@@\n", 'ignore = ["E501"]', 'ignore = ["E501", "F821"]', "gate-loosened", "ignore = []"),
    ("pyproject.toml", "[tool.mypy]\n@@\n", "strict = true", "strict = false", "gate-loosened", "strict = true\nwarn_unreachable = true"),
    ("pyproject.toml", "[tool.pytest.ini_options]\n@@\n", 'addopts = "-q"', "addopts = \"-q -k 'not slow'\"", "test-settings-narrowed", 'addopts = "-q --strict-markers"'),
    ("pyproject.toml", "[tool.pytest.ini_options]\n@@\n", 'testpaths = ["tests"]', 'testpaths = ["smoke"]', "test-settings-narrowed", 'testpaths = ["tests", "more"]'),
    ("pyproject.toml", "[tool.unstuck]\n@@\n", 'verify = "pytest"', 'verify = "true"', "own-settings-changed", 'verify = "pytest"\n\n[tool.other]\nx = 1'),
    ("setup.cfg", "[flake8]\n@@\n", "max-complexity = 10", "max-complexity = 40", "threshold-lowered", "max-complexity = 8"),
    ("tox.ini", "[testenv]\ncommands =\n    @@\n", "pytest", "- pytest", "always-green", "pytest\n    mypy src"),
    ("tsconfig.json", '{"compilerOptions": {@@}}\n', '"strict": true', '"strict": false', "gate-loosened", '"strict": true, "noUnusedLocals": true'),
    (".eslintrc.json", '{"rules": {@@}}\n', '"eqeqeq": "error"', '"eqeqeq": "off"', "gate-loosened", '"eqeqeq": "error", "no-var": "error"'),
    ("jest.config.js", "module.exports = { coverageThreshold: { global: { @@ } } };\n", "lines: 90", "lines: 10", "threshold-lowered", "lines: 95"),
    ("vitest.config.ts", "export default defineConfig({ test: { @@ } });\n", "globals: true", "globals: true, exclude: ['**/*.test.ts']", "test-settings-narrowed", "globals: true, environment: 'jsdom'"),
    ("package.json", '{"scripts": {@@}}\n', '"test": "jest"', '"test": "jest || true"', "always-green", '"test": "jest --coverage"'),
    ("package.json", '{"scripts": {@@}}\n', '"test": "jest"', '"test": "echo ok"', "check-changed", '"test": "jest", "dev": "node a.js"'),
    ("Makefile", "test:\n\t@@\n", "pytest", "pytest || true", "always-green", "pytest -n auto"),
    ("Makefile", "test:\n\t@@\n", "pytest", "-pytest", "always-green", "pytest\n\truff check ."),
    (".github/workflows/ci.yml", "jobs:\n  test:\n    steps:\n@@\n", "      - run: pytest", "      - run: pytest\n        continue-on-error: true", "always-green", "      - run: pytest\n      - run: mkdocs build"),
    (".github/workflows/ci.yml", "jobs:\n  test:\n    steps:\n      - run: pip list\n@@\n", "      - run: pytest", "", "ci-changed", "      - run: pytest --junitxml=out.xml"),
    (".pre-commit-config.yaml", "repos:\n  - repo: local\n    rev: v1\n    hooks:\n@@\n", "      - id: ruff", "", "ci-changed", "      - id: ruff\n      - id: mypy"),
    ("scripts/check.sh", "set -e\n@@\n", "pytest", "pytest\nexit 0", "always-green", "pytest\nruff check ."),
    ("tests/golden/a.txt", "total @@\n", "5", "7", "golden-changed", "5 "),
    ("tests/data/a.json", '{"a": 1@@}\n', ', "b": 2', ', "b": 3', "testdata-changed", ', "b": 2, "c": 4'),
    ("a/__snapshots__/x.snap", "exports[`a 1`] = `one`;\n\n@@\n", "exports[`b 1`] = `two`;", "exports[`b 1`] = `dos`;", "snapshot-changed", "exports[`b 1`] = `two`;\n\nexports[`c 1`] = `x`;"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "text", "now", "weaker", "rule", "fine"),
    SETTINGS,
    ids=[f"{row[0]} {row[3].strip() or 'gone'}" for row in SETTINGS],
)
def test_a_gate_may_be_raised_but_not_lowered(
    path: str, text: str, now: str, weaker: str, rule: str, fine: str
) -> None:
    def judged(new: str) -> list[Finding]:
        change = Change(path=path, old=text.replace("@@", now), new=text.replace("@@", new))
        return serious(change, checks=("pytest", "npm test", "sh scripts/check.sh"))

    assert rule in {finding.rule for finding in judged(weaker)}
    assert judged(fine) == []


def test_the_supervisors_own_settings_may_not_change() -> None:
    change = Change(path="unstuck.toml", old="[verify]\n", new="[verify]\nunverified = 'land'\n")
    assert [one.rule for one in serious(change)] == ["own-settings-changed"]


ANYWHERE = [
    ("tests/conftest.py", "collection-hooked", "\ndef pytest_collection_modifyitems(items):\n    items[:] = items[:1]\n", "\ndef pytest_collection_modifyitems(items):\n    items.sort(key=str)\n"),
    ("tests/conftest.py", "collection-hooked", '\ncollect_ignore = ["test_cart.py"]\n', '\npytest_plugins = ["shop.testing"]\n'),
    ("tests/conftest.py", "subject-mocked", '\nsys.modules["shop.cart"] = Mock()\n', '\nsys.path.insert(0, "src")\n'),
    ("tests/conftest.py", "early-exit", "\nos._exit(0)\n", "\nos.environ['TZ'] = 'UTC'\n"),
    ("src/shop/cart.py", "equality-overridden", "\nclass Money:\n    def __eq__(self, other):\n        return True\n", "\nclass Money:\n    def __eq__(self, other):\n        return self.n == other.n\n"),
    ("src/shop/cart.py", "test-detected", '\ndef f():\n    if "PYTEST_CURRENT_TEST" in os.environ:\n        return 18\n', '\ndef f():\n    if "SHOP_MODE" in os.environ:\n        return 18\n'),
    ("src/shop/cart.ts", "test-detected", "\nexport const f = () => { if (process.env.NODE_ENV === 'test') return 18; };\n", "\nif (process.env.NODE_ENV !== 'test') app.listen(80);\n"),
    ("src/shop/cart.ts", "possible-early-exit", "\nexport function f() { process.exit(0); }\n", "\nprocess.on('SIGTERM', () => process.exit(0));\n"),
    ("src/shop/cart.py", "suppressions-added", "\na = f()  # type: ignore\nb = g()  # type: ignore\nc = h()  # noqa\n", "\na = f()  # type: ignore[no-any-return]  # h is untyped\n"),
    ("src/shop/cart.ts", "suppressions-added", "\n// @ts-nocheck\n", "\n// eslint-disable-next-line no-console -- the log is wanted\nconsole.log(1);\n"),
    (".env", "secret", "TOKEN=" + "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8\n", "TOKEN=\n"),
    ("pytest.py", "tool-shadowed", "def main():\n    return 0\n", ""),
]  # fmt: skip


@pytest.mark.parametrize(("path", "rule", "bad", "fine"), ANYWHERE, ids=[f"{row[1]} {row[0]}" for row in ANYWHERE])
def test_some_things_are_suspicious_wherever_they_stand(path: str, rule: str, bad: str, fine: str) -> None:
    before = None if path in {".env", "pytest.py"} else "import os\nimport sys\n"
    assert rule in {finding.rule for finding in serious(Change(path=path, old=before, new=(before or "") + bad))}
    if fine:
        assert serious(Change(path=path, old=before, new=(before or "") + fine)) == []


def test_answers_written_down_for_the_tests_are_found() -> None:
    old = "def total(a, b):\n    return a * b\n"
    new = "def total(a, b):\n    if a == 4 and b == 5:\n        return 20\n    return 0\n"
    tests = {"tests/test_total.py": "def test_total():\n    assert total(4, 5) == 20\n"}
    assert [one.rule for one in serious(Change(path="src/shop/cart.py", old=old, new=new), context=tests)] == [
        "answers-hard-coded"
    ]
    base = "def total(a, b):\n    if a == 0:\n        return 0\n    return a * b\n"
    assert serious(Change(path="src/shop/cart.py", old=old, new=base), context=tests) == []


def test_a_test_may_go_with_the_feature_that_it_tests() -> None:
    test = Change(
        path="tests/test_old.py", old="from shop.old import report\n\ndef test_report():\n    assert report(2) == 6\n"
    )
    kept = Change(
        path="src/shop/old.py", old="def report(x):\n    return x * 3\n", new="def report(x):\n    return x * 4\n"
    )
    gone = Change(path="src/shop/old.py", old="def report(x):\n    return x * 3\n")
    assert [one.rule for one in serious(test, kept)] == ["test-deleted"]
    assert serious(test, gone) == []


def test_a_test_may_move_but_not_to_where_no_runner_looks() -> None:
    text = "def test_x():\n    assert f(1) == 2\n"
    gone = Change(path="tests/test_a.py", old=text)
    assert serious(gone, Change(path="tests/unit/test_b.py", new=text)) == []
    assert [one.rule for one in serious(gone, Change(path="attic/test_a.py", new=text))] == ["test-hidden"]


def test_settings_may_move_to_another_file() -> None:
    gone = Change(path=".coveragerc", old="[report]\nfail_under = 80\n")
    assert serious(gone, Change(path="pyproject.toml", old="", new="[tool.coverage.report]\nfail_under = 80\n")) == []
    assert [
        one.rule
        for one in serious(gone, Change(path="pyproject.toml", old="", new="[tool.coverage.report]\nfail_under = 8\n"))
    ] == ["threshold-lowered"]


@pytest.mark.parametrize(
    ("declared", "severity"),
    [
        pytest.param(("src/shop/cart.py",), "reject", id="the task names other files"),
        pytest.param(("src/shop/cart.py", "tests/test_cart.py"), "warn", id="the task names the test"),
        pytest.param(("tests/**",), "warn", id="the task names a pattern"),
        pytest.param(("tests",), "warn", id="the task names the folder"),
        pytest.param((), "ask", id="the task names no files"),
    ],
)
def test_what_the_task_names_decides_how_grave_a_finding_is(declared: tuple[str, ...], severity: str) -> None:
    removed = changed(PY, ("        assert total([], rate=2) == 0\n", ""))
    assert {one.severity for one in audit([removed], declared)} == {severity}


@pytest.mark.parametrize(
    ("change", "severity"),
    [
        pytest.param(("== 18", "> 1"), "ask", id="a loosened assertion is asked about"),
        pytest.param(
            ("    def test_total", "    @pytest.mark.skip\n    def test_total"), "reject", id="a skip is refused"
        ),
    ],
)
def test_a_named_test_may_expect_something_else_but_not_less(change: tuple[str, str], severity: str) -> None:
    assert {one.severity for one in audit([changed(PY, change)], ("tests/test_cart.py",))} == {severity}


def test_a_named_makefile_does_not_excuse_a_swallowed_failure() -> None:
    change = Change(path="Makefile", old="test:\n\tpytest\n", new="test:\n\tpytest || true\n")
    assert [one.severity for one in audit([change], ("Makefile",))] == ["reject"]


def test_a_named_path_does_not_excuse_an_emptied_test() -> None:
    emptied = changed(PY, ("    assert cart.rate(code) == rate", "    assert True"))
    assert [one.severity for one in audit([emptied], ("tests/test_cart.py",))] == ["reject"]


def test_a_check_program_that_the_checks_name_may_not_change() -> None:
    change = Change(
        path="tools/check_schema.py",
        old="import sys\nif bad():\n    sys.exit(1)\n",
        new="import sys\nif bad():\n    print(1)\n",
    )
    assert [one.rule for one in serious(change, checks=("python tools/check_schema.py",))] == ["check-changed"]
    assert serious(change, checks=("pytest",)) == []


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        pytest.param("calc_test.go", 'func TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal("bad")\n\t}\n}\n', 'func TestAdd(t *testing.T) {\n\tt.Skip("later")\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal("bad")\n\t}\n}\n', id="go"),
        pytest.param("src/lib.rs", "#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n", "#[test]\n#[ignore]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n", id="rust"),
        pytest.param("src/test/java/CalcTest.java", "@Test\nvoid adds() {\n    assertEquals(3, add(1, 2));\n}\n", "@Test\nvoid adds() {\n    assertNotNull(add(1, 2));\n}\n", id="java"),
        pytest.param("tests/test_py2.py", "def test_x():\n    print 'x'\n    assert f(1) == 2\n", "def test_x():\n    print 'x'\n    assert True\n", id="a text that does not parse"),
    ],
)  # fmt: skip
def test_other_languages_are_judged_by_their_lines(path: str, old: str, new: str) -> None:
    assert serious(Change(path=path, old=old, new=new))
    assert serious(Change(path=path, old=old, new=old + "\n")) == []


TEXTS = st.one_of(
    st.none(),
    st.text(max_size=200),
    st.sampled_from(
        [PYTHON, UNITTEST, SCRIPT, NODE, "(" * 5000, "[" * 300 + "]" * 300, "`${`${", "/*", "'''", "\0", "a" * 10_000]
    ),
    st.lists(
        st.sampled_from([*PYTHON.splitlines(), *SCRIPT.splitlines(), "if False:", "}", "{", ")", "/", "\\", "`"]),
        max_size=30,
    ).map("\n".join),
)
PATHS = st.sampled_from([*BASES, "tests/conftest.py", "pyproject.toml", "package.json", "Makefile", ".github/workflows/a.yml", "src/a.py", "src/a.ts", "x_test.go", "a.snap", "tests/a.json", "tox.ini", ".eslintrc", "odd\nname"])  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.builds(Change, path=PATHS, old=TEXTS, new=TEXTS, binary=st.booleans()), max_size=4))
def test_no_change_makes_the_audit_fail(changes: list[Change]) -> None:
    for finding in audit(changes, (), ("pytest",)):
        assert finding.rule in RULES
        assert finding.line >= 1


def test_a_change_that_changes_nothing_is_clean() -> None:
    assert audit([Change(path=path, old=text, new=text) for path, text in BASES.items()]) == ()


ONE_LINE = "!function(){" + ";".join(f"var a{n}=function(b,c){{return b+c*{n}}}" for n in range(25_000)) + "}();"
LONG = "".join(f"def test_{n}():\n    assert f({n}) == {n}\n\n\n" for n in range(5_000))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(Change(path="src/a.min.js", old=ONE_LINE, new=ONE_LINE.replace("a7=", "q7=")), id="one line of code"),
        pytest.param(Change(path="test/a.test.js", new=ONE_LINE), id="one line as a test"),
        pytest.param(Change(path="tests/test_a.py", old=LONG), id="thousands of tests deleted"),
        pytest.param(Change(path="tests/test_a.py", old=LONG, new=LONG.replace("f(77)", "g(77)")), id="one of thousands"),
        pytest.param(Change(path="src/a.ts", old="x", new="if (a === 'b' &&" * 20_000), id="conditions without end"),
        pytest.param(Change(path="test/a.test.ts", old="x", new="a<" * 20_000), id="brackets without end"),
        pytest.param(Change(path=".github/workflows/a.yml", old="- run: pytest a\n" * 3000, new="\n".join(f"- run: pytest {n}" for n in range(3000))), id="a long build"),
    ],
)  # fmt: skip
def test_a_huge_text_does_not_stall_the_audit(change: Change) -> None:
    began = time.process_time()
    audit([change], ("src",), ("pytest",))
    assert time.process_time() - began < 8


def test_the_time_grows_with_the_size_of_the_change_only() -> None:
    def seconds(count: int) -> float:
        changes = [
            Change(path=f"m{n}/tests/test_cart.py", old=PYTHON, new=PYTHON.replace("18", str(n))) for n in range(count)
        ]
        began = time.process_time()
        audit(changes, ("src",), ("pytest",))
        return time.process_time() - began

    seconds(10)
    assert seconds(160) < 8 * max(seconds(40), 0.05)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("tests/test_a.py", "\n" * 100_000, id="blank lines in a test"),
        pytest.param(
            "tests/a_test.go", f"func TestA(t *testing.T) {{\n{'a' * 100_000}\n}}\n", id="a long word in a test"
        ),
        pytest.param("setup.cfg", f"a{' ' * 100_000}b\n", id="spaces in settings"),
        pytest.param("Makefile", f"all{' ' * 100_000}$\n", id="spaces in a Makefile"),
    ],
)
def test_a_long_text_without_meaning_is_soon_read(path: str, text: str) -> None:
    assert audit([Change(path=path, old="", new=text)]) == ()
