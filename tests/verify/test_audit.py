"""What the audit finds in a change, in every language, and the honest changes that look like it."""

from collections.abc import Sequence

import pytest
from tests.sampling import some

from unstuck.model.changes import Change
from unstuck.verify.audit.auditing import accounted, audit
from unstuck.verify.audit.weakened_settings import is_harmless
from unstuck.verify.change import is_judge, part_of

PY = """\
import pytest

from shop.cart import Cart, total
from tests.sampling import some


def test_total():
    assert total([4, 5], rate=2) == 18
    assert total([], rate=2) == 0


def test_refuses():
    with pytest.raises(ValueError, match="negative"):
        total([-1], rate=2)


@pytest.mark.parametrize(("code", "rate"), [("TEN", 0.1), ("HALF", 0.5), ("NONE", 0.0)])
def test_coupon(code, rate):
    assert Cart().rate(code) == rate
"""
GO = """\
package a

func TestAdd(t *testing.T) {
	if got := Add(1, 2); got != 3 {
		t.Errorf("Add(1, 2) = %d", got)
	}
	assert.Equal(t, "0s", Format(0))
}
"""
JS = """\
test('adds', () => {
  expect(add(1, 2)).toBe(3)
  expect(add(0, 0)).toBe(0)
})
"""
RUST = """\
pub fn mul(a: u32, b: u32) -> u32 { a * b }

#[cfg(test)]
mod tests {
    #[test]
    fn multiplies() {
        for (a, b, product) in [(2, 3, 6), (1, 4, 4), (0, 9, 0)] {
            assert_eq!(super::mul(a, b), product);
        }
    }
}
"""
WITHIN = """\
import unittest


def add(a, b):
    assert a is not None
    return a + b


class Sums(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)
        self.assertEqual(add(0, 0), 0)
"""
SOURCE = """\
export const add = (a: number, b: number) => a + b

if (import.meta.vitest) {
  const { it, expect } = import.meta.vitest
  it('adds', () => {
    expect(add(1, 2)).toBe(3)
    expect(add(0, 0)).toBe(0)
  })
}
"""
ASYNC = RUST.replace("#[test]", "#[tokio::test]").replace("fn multiplies", "async fn multiplies")
PATHS = {
    WITHIN: "calc.py",
    SOURCE: "src/add.ts",
    ASYNC: "src/lib.rs",
    PY: "tests/test_cart.py",
    GO: "a_test.go",
    JS: "src/add.test.js",
    RUST: "src/lib.rs",
}
PRODUCT = Change(path="shop/cart.py", old="RATE = 'one'\n", new="RATE = 'two'\n")


def changed(text: str, *edits: tuple[str, str]) -> list[Change]:
    new = text
    for old, instead in edits:
        assert old in new, old
        new = new.replace(old, instead, 1)
    return [Change(path=PATHS[text], old=text, new=new), PRODUCT]


def rules(changes: Sequence[Change], declared: Sequence[str] = ("shop",), red: Sequence[str] = ()) -> dict[str, str]:
    return {one.rule: one.severity for one in audit(changes, declared, red)}


WEAKENED = [
    (PY, ("    assert total([], rate=2) == 0\n", ""), "assertion-removed"),
    (PY, ("assert total([], rate=2) == 0", "assert total([], rate=2) is not None"), "assertion-loosened"),
    (PY, ("assert total([], rate=2) == 0", "assert True"), "assertion-vacuous"),
    (PY, ("assert total([], rate=2) == 0", "assert [] == []"), "assertion-vacuous"),
    (
        PY,
        ("def test_coupon(code, rate):\n", "def test_coupon(code, rate):\n    if not rate:\n        return\n"),
        "assertion-guarded",
    ),
    (PY, ("== 18", "== 19"), "expected-changed"),
    (PY, ("def test_refuses", "def check_refuses"), "test-hidden"),
    (PY, ("def test_total():", "@pytest.mark.skip\ndef test_total():"), "test-skipped"),
    (PY, ("def test_total():", "def test_total():\n    return"), "assertion-unreachable"),
    (PY, ('("HALF", 0.5), ', ""), "cases-removed"),
    (GO, ("func TestAdd", "func testAdd"), "test-hidden"),
    (GO, ("package a", "//go:build ignore\n\npackage a"), "test-skipped"),
    (GO, ("got != 3", "got != 4"), "expected-changed"),
    (GO, ("\tif got", "\treturn\n\tif got"), "assertion-unreachable"),
    (JS, ("test(", "test.skip("), "test-skipped"),
    (JS, ("'adds', ()", "'adds', { skip: 'later' }, ()"), "test-skipped"),
    (JS, ("test(", "test.only("), "test-focused"),
    (JS, ("  expect(add(0, 0)).toBe(0)\n", ""), "assertion-removed"),
    (JS, ("=> {\n", "=> {\n  if (process.env.CI) return\n"), "assertion-guarded"),
    (WITHIN, ("        self.assertEqual(add(0, 0), 0)\n", ""), "assertion-removed"),
    (WITHIN, ("    def test_add", "    @unittest.skip('later')\n    def test_add"), "test-skipped"),
    (SOURCE, ("    expect(add(0, 0)).toBe(0)\n", ""), "assertion-removed"),
    (SOURCE, ("it('adds'", "it.skip('adds'"), "test-skipped"),
    (ASYNC, ("assert_eq!(super::mul(a, b), product)", "assert!(super::mul(a, b) < 99)"), "assertion-loosened"),
    (RUST, ("(1, 4, 4), (0, 9, 0)", ""), "cases-removed"),
    (RUST, ("#[test]", "#[test]\n    #[ignore]"), "test-skipped"),
    (RUST, ("#[test]", "#[test]\n    #[should_panic]"), "test-skipped"),
    (RUST, ("assert_eq!(super::mul(a, b), product)", "assert!(super::mul(a, b) < 99)"), "assertion-loosened"),
]


def test_a_weakened_test_is_found_in_every_language() -> None:
    offenders = [
        (edit, wanted, found)
        for text, edit, wanted in WEAKENED
        if wanted not in (found := rules(changed(text, edit))) or found[wanted] == "warn"
    ]
    assert offenders == []


def test_a_task_that_names_the_tests_may_change_what_they_expect_but_not_how_much_they_say() -> None:
    offenders = [
        (edit, severity)
        for text, edit, rule in WEAKENED
        for severity in [rules(changed(text, edit), ("shop", "tests", "src", "a_test.go", "calc.py")).get(rule)]
        if (severity == "warn") != (rule == "expected-changed")
    ]
    assert offenders == []


@pytest.mark.parametrize("text", [PY, GO, JS])
def test_a_test_that_was_red_is_not_made_green_by_being_rid_of_it(text: str) -> None:
    name = {PY: "tests/test_cart.py::test_total", GO: "TestAdd", JS: "add.test.js > adds"}[text]
    found = audit([Change(path=PATHS[text], old=text, new="package a\n"), PRODUCT], (PATHS[text], "shop"), (name,))
    assert [one.severity for one in found if "failed before" in one.says] == ["reject"]


HONEST = [
    ("a renamed local", JS, ("'adds', () => {", "'adds', () => {\n  const unused = 1")),
    ("a renamed test", PY, ("def test_total", "def test_total_of_a_list")),
    ("more rows", PY, ('("HALF", 0.5), ', '("HALF", 0.5), ("FREE", 1.0), ')),
    ("another layout", JS, ("expect(add(1, 2)).toBe(3)", "expect(\n    add(1, 2),\n  ).toBe(3)")),
    ("another style", PY, ("assert total([], rate=2) == 0", "assert 0 == total([], rate=2)")),
    ("stricter", RUST, ("assert_eq!(super::mul(a, b), product);", "assert_eq!(super::mul(a, b), product); assert_eq!(super::mul(b, a), product);")),
    ("a word that means skip elsewhere", JS, ("expect(add(0, 0))", "queue.pending()\n  expect(add(0, 0))")),
    ("what the product asserts of itself", WITHIN, ("    assert a is not None\n", "")),
    ("the product beside its tests", SOURCE, ("=> a + b", "=> b + a")),
    ("a test more", GO, ("func TestAdd", "func TestSub(t *testing.T) {\n\tassert.Equal(t, 1, Sub(3, 2))\n}\n\nfunc TestAdd")),
]  # fmt: skip


def test_an_honest_change_of_tests_is_let_pass() -> None:
    assert [(name, rules(changed(text, edit))) for name, text, edit in HONEST if rules(changed(text, edit))] == []


def test_a_moved_and_a_tabulated_test_lose_nothing() -> None:
    moved = [
        Change(path="tests/test_cart.py", old=PY, new=None),
        Change(path="tests/shop/test_cart.py", old=None, new=PY),
    ]
    table = """\
import pytest
from shop.cart import total

@pytest.mark.parametrize(("items", "sum_"), [([4, 5], 18), ([], 0)])
def test_totals(items, sum_):
    assert total(items, rate=2) == sum_
"""
    tail = PY[PY.index("def test_refuses") :]
    assert rules(moved) == {}
    assert rules([Change(path="tests/test_cart.py", old=PY, new=table + "\n\n" + tail), PRODUCT]) == {}


def test_it_is_said_which_tests_of_the_base_live_on() -> None:
    new = PY.replace("def test_total", "def test_sum").replace("    with pytest", "    return\n    with pytest")
    found = dict(accounted([Change(path="tests/test_cart.py", old=PY, new=new)]))
    assert found == {"test_total": True, "test_refuses": False, "test_coupon": True}


def test_tests_that_cannot_be_read_are_a_question() -> None:
    cases = [
        Change(path="tests/a_test.zig", old="test a {}", new=""),
        Change(path="spec/a_spec.lua", old="assert.same(f(), 1)", new=""),
        Change(path="tests/test_a.py", old="", new="", binary=True),
        Change(
            path="tests/test_a.py",
            old="def test_a(): assert f()",
            new="<<<<<<< %% ((( ]] $$$$ }}}} ???? ====== ;;; !!!",
        ),
    ]
    assert [
        one
        for one in cases
        if "ask" not in rules([one], ("shop",)).values() and "reject" not in rules([one], ("shop",)).values()
    ] == []
    assert rules(cases[:1], ("tests",)) == {"tests-unread": "ask"}


MAKE = "test: t\n\t./t\nt: a.c\n\tcc -o t a.c\nclean:\n\trm t\n"
MADE = {"\t./t || true": "always-green", "\t-./t": "always-green", "\t@- ./t": "always-green", "\t./t; exit 0": "always-green",
        "\t@echo all tests pass": "check-changed", "\ttrue || ./t": "check-changed", "\t# ./t": "check-changed"}  # fmt: skip
"""What takes the place of a command that no table knows, and what is said of it."""
TASKS = "tasks:\n  test:\n    cmds:\n      - ./t\n"
NOX = 'def tests(session):\n    session.run("./t")\n'
STAGE = "stages {\n  stage('Test') {\n    steps {\n      sh './t'\n    }\n  }\n}\n"
STEPS = "jobs:\n  all:\n    steps:\n      - name: Test\n        run: ./t\n"
OURS = "[checks]\ntest = './t'\nlint = './l'\n"
SETTINGS = [
    ("pyproject.toml", "[tool.coverage.report]\nfail_under = 80\n", "[tool.coverage.report]\nfail_under = 30\n", "threshold-lowered"),
    ("jest.config.js", "module.exports = {\n  coverageThreshold: {\n    lines: 90,\n  },\n}\n", "module.exports = {\n  coverageThreshold: {\n    lines: 9,\n  },\n}\n", "threshold-lowered"),
    (".eslintrc", '{"rules": {"max-warnings": 0}}', '{"rules": {"max-warnings": 50}}', "threshold-lowered"),
    ("Cargo.toml", "[package]\nname = 'a'\n", "[package]\nname = 'a'\nautotests = false\n", "test-settings-narrowed"),
    ("pom.xml", "<configuration>\n</configuration>\n", "<configuration>\n<skipTests>true</skipTests>\n</configuration>\n", "test-settings-narrowed"),
    ("build.gradle", "test {\n}\n", "test {\n  ignoreFailures = true\n}\n", "always-green"),
    ("a/A.Tests.csproj", "<PropertyGroup>\n</PropertyGroup>\n", "<PropertyGroup>\n<IsTestProject>false</IsTestProject>\n</PropertyGroup>\n", "test-settings-narrowed"),
    ("Makefile", "test:\n\tpytest\n", "test:\n\tpytest || true\n", "always-green"),
    (".github/workflows/ci.yml", "steps:\n  - run: pytest\n", "steps:\n  - run: echo done\n", "ci-changed"),
    ("package.json", '{"jest": {}}', '{"jest": {"testPathIgnorePatterns": ["src/add.test.js"]}}', "test-settings-narrowed"),
    ("ruff.toml", None, 'ignore = ["ALL"]\n', "gate-loosened"),
    *(("Makefile", MAKE, MAKE.replace("\t./t\n", f"{now}\n"), rule) for now, rule in MADE.items()),
    ("Makefile", MAKE, f".IGNORE: test\n{MAKE}", "always-green"),
    ("Makefile", MAKE, MAKE.replace("test: t\n\t./t\n", "test:\nreal: t\n\t./t\n"), "test-settings-narrowed"),
    ("build/rules.mk", MAKE, MAKE.replace("\t./t\n", "\t@-./t\n"), "always-green"),
    ("justfile", "test *ARGS:\n    ./t\n", "test *ARGS:\n    -./t\n", "always-green"),
    ("Taskfile.yml", TASKS, TASKS.replace("- ./t", "- ./t || true"), "always-green"),
    ("Taskfile.yml", TASKS, f"{TASKS}    ignore_error: true\n", "always-green"),
    ("noxfile.py", NOX, NOX.replace('("./t")', '("./t", success_codes=[0, 1])'), "always-green"),
    ("noxfile.py", NOX, NOX.replace('session.run("./t")', "pass"), "test-settings-narrowed"),
    ("tasks.py", "def test(c):\n    c.run('./t')\n", "def test(c):\n    c.run('./t', warn=True)\n", "always-green"),
    ("Rakefile", "task :test do\n  sh './t'\nend\n", "task :test do\n  sh './t || true'\nend\n", "always-green"),
    ("tox.ini", "[testenv]\ncommands =\n    ./t\n", "[testenv]\ncommands =\n    - ./t\n", "always-green"),
    ("tox.ini", "[testenv]\ncommands = ./t\n", "[testenv]\ncommands = true\n", "test-settings-narrowed"),
    (".github/workflows/ci.yml", STEPS, STEPS.replace("./t", "./t || :"), "always-green"),
    (".github/workflows/ci.yml", STEPS, STEPS.replace("./t", "echo fine"), "test-settings-narrowed"),
    (".github/workflows/ci.yml", STEPS, f"{STEPS}        continue-on-error: true\n", "ci-changed"),
    ("run_tests.sh", "cc -o t t.c\n./t\n", "cc -o t t.c\n./t; true\n", "always-green"),
    ("run_tests.sh", "cc -o t t.c\n./t\n", "cc -o t t.c\n./t\nexit 0\n", "always-green"),
    ("run_tests.sh", "cc -o t t.c\n./t\n", "set +e\ncc -o t t.c\n./t\n", "always-green"),
    ("scripts/check", "./a\n./b\n", "./a\n", "check-changed"),
    ("package.json", '{"scripts": {"test": "./t"}}', '{"scripts": {"test": "./t || true"}}', "always-green"),
    ("package.json", '{"scripts": {"test": "./t"}}', '{"scripts": {"test": "echo fine"}}', "test-settings-narrowed"),
    ("Jenkinsfile", STAGE, STAGE.replace("'./t'", "'./t || true'"), "always-green"),
    ("unstuck.toml", OURS, "[checks]\n", "test-settings-narrowed"),
    ("unstuck.toml", OURS, OURS.replace("lint = './l'\n", ""), "check-changed"),
    ("meson.build", "test('a', exe)\n", "test('a', exe, should_fail: true)\n", "test-settings-narrowed"),
]  # fmt: skip


def test_a_gate_that_asks_for_less_is_found() -> None:
    found = [(path, rule, rules([Change(path=path, old=old, new=new)])) for path, old, new, rule in SETTINGS]
    assert [one for one in found if one[1] not in one[2]] == []


REWRITTEN = [
    ("Makefile", MAKE, MAKE.replace("\t./t\n", "\t./t --verbose\n").replace("\trm t", "\t-rm t")),
    ("Makefile", MAKE, MAKE.replace("\t./t\n", "\t@echo running\n\t./t\n\t-rm -f report\n")),
    ("Makefile", MAKE, MAKE.replace("\t./t\n", "\t@echo running && ./t\n").replace("cc -o", "cc -O2 -o")),
    ("Makefile", MAKE, MAKE.replace("test: t", "check: t")),
    ("Makefile", "TEST_FILES = a.c \\\n\tb.c\n", "TEST_FILES = a.c\n"),
    (".github/workflows/ci.yml", STEPS.replace("run:", "with:\n          python: 3.8\n        run:"), STEPS),
    (".github/workflows/ci.yml", STEPS, STEPS.replace("run: ./t", "run: |\n          make t\n          ./t")),
    ("run_tests.sh", "./t\n", 'if [ -z "$1" ]; then\n  exit 0\nfi\n./t "$1"\n'),
    ("deploy.sh", "./push\n./t\n", "./push || true\n"),
    ("scripts/release", "threshold=5\nexclude=a\n", "threshold=4\nexclude=b\n"),
    (".gitignore", "dist\n.tox\n", "dist\n"),
    ("tests/test_new.py", None, "class No:\n    def __bool__(self):\n        return False\n"),
    ("package.json", '{"scripts": {"test": "./t"}}', '{"scripts": {"test": "./t && ./u"}}'),
]  # fmt: skip


def test_a_command_that_is_rewritten_beside_or_below_no_check_is_no_finding() -> None:
    found = [(path, new, rules([Change(path=path, old=old, new=new)])) for path, old, new in REWRITTEN]
    assert [one for one in found if one[2]] == []


def test_a_threshold_does_not_fall_silently_where_the_settings_are_named() -> None:
    path, old, new, _ = SETTINGS[0]
    assert rules([Change(path=path, old=old, new=new)], (path,)) == {"threshold-lowered": "ask"}


def test_settings_of_the_product_alone_are_harmless() -> None:
    old = '{"version": "1.0.0", "dependencies": {"a": "1"}, "scripts": {"test": "jest"}}'
    cases = {
        old.replace("1.0.0", "1.1.0").replace('"a": "1"', '"a": "1", "b": "2"'): True,
        old.replace('"jest"', '"echo"'): False,
    }
    found = {new: is_harmless(Change(path="package.json", old=old, new=new)) for new in cases}
    assert found == cases


PARTS = {
    "test": "tests/test_a.py a_test.go src/a.test.ts spec/a_spec.rb src/test/java/ATest.java A.Tests/BTests.cs test/a_test.exs Tests/ATests.swift tests/it.rs test/a_test.cc",
    "settings": "pytest.ini .mypy.ini jest.config.js ruff.toml eslint.config.js web/.eslintrc .npmrc .cargo/config.toml Cargo.toml .golangci.yml tox.ini phpunit.xml.dist a.csproj wallaby.js a.config.mjs .pnp.cjs",
    "commands": "GNUmakefile makefile x.mk .github/workflows/ci.yml CMakeLists.txt scripts/check build.sh",
    "support": "conftest.py sitecustomize.py spec/spec_helper.rb jest.setup.js src/__mocks__/a.js",
    "snapshot": "src/__snapshots__/a.test.js.snap tests/expected/a.txt a.golden",
    "testdata": "testdata/a.json tests/fixtures/a.html",
    "lock": "poetry.lock package-lock.json go.sum Cargo.lock",
    "product": "src/a.py lib/a.rb app/a.tsx main.go src/lib.rs src/data/a.json styles/a.css src/app.config.ts",
    "docs": "README.md docs/a.rst LICENSE",
    "unknown": "weird .strange data.bin a.toml",
    "ours": "unstuck.toml .unstuck/x",
}  # fmt: skip


def test_every_path_has_its_part_and_what_is_not_product_is_the_judges() -> None:
    found = [(path, part_of(path)) for part, paths in PARTS.items() for path in paths.split() if part_of(path) != part]
    assert found == []
    judges = {part for part, paths in PARTS.items() if is_judge(paths.split()[0])}
    assert judges == set(PARTS) - {"product", "docs"}


@pytest.mark.parametrize("ending", some(["py", "js", "go", "rs", "rb", "php", "cs", "cpp"], every=3))
def test_hostile_text_neither_ends_nor_stops_the_audit(ending: str) -> None:
    texts = [
        "(" * 5_000,
        "{[" * 3_000,
        '"' * 5_000,
        "\ud800\x00\xff",
        "assert_eq!(a, b); " * 500,
        "\r\n" * 9_000,
        "a." * 5_000,
    ]
    for text in texts:
        found = audit([Change(path=f"tests/test_a_test.{ending}", old=text, new="x"), PRODUCT], ("shop",))
        assert all(one.severity in {"reject", "ask", "warn"} for one in found)


def test_what_no_test_can_see_in_the_product_is_found() -> None:
    lines = {
        "os._exit(0)": "early-exit",
        "ctypes.CDLL(None).exit(0)": "early-exit",
        'if "pytest" in sys.modules:': "test-detected",
        "def __eq__(self, other): return True": "equality-overridden",
        "# type: ignore\nx = 1  # noqa\ny = 2  # noqa\nz = 3  # noqa": "suppressions-added",
    }
    found = {text: rules([Change(path="shop/cart.py", old="a = 1\n", new=f"a = 1\n{text}\n")]) for text in lines}
    assert [(text, rule, found[text]) for text, rule in lines.items() if rule not in found[text]] == []


def test_added_records_and_named_suppressions_are_no_findings() -> None:
    snapshot = Change(path="src/__snapshots__/a.test.js.snap", old="a\nb\n", new="a\nnew\nb\n")
    named = Change(
        path="shop/cart.py", old="", new="\n".join(f"x{n} = 1  # noqa: E501  # the address is long" for n in range(9))
    )
    assert rules([snapshot, named]) == {}
