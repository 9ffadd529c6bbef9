"""The same failure again has the same signature; another failure has another."""

import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.growth import faster_than_linear

from unstuck.diagnosis.signature import _ROOTS, normal_form, signature
from unstuck.model.text import shown

SAME = [
    pytest.param(
        "/home/ann/shop/src/cart.py:12:5: error: Incompatible types",
        "/tmp/wt-7/src/cart.py:340:11: error: Incompatible types",
        id="checkout and place in the file",
    ),
    pytest.param(
        "C:\\Users\\ann\\shop\\src\\cart.ts(3,5): error TS2345: wrong type",
        "D:\\build\\src\\cart.ts(91,15): error TS2345: wrong type",
        id="windows checkout",
    ),
    pytest.param(
        "Traceback:\n  File \"/a/main.py\", line 3, in <module>\nKeyError: 'price'",
        'Traceback:\n  File "/b/c/main.py", line 77, in <module>\nKeyError: "price"',
        id="traceback and quotes",
    ),
    pytest.param(
        "cart.c:3:3: error: expected \u2018;\u2019 before \u2018return\u2019",
        "cart.c:9:1: error: expected `;' before `return'",
        id="typographic quotes",
    ),
    pytest.param(
        "\x1b[1;31mError\x1b[0m: cannot open the till\r\n", "Error: cannot open the till", id="colours and line ends"
    ),
    pytest.param(
        "10%\r55%\r100%\nError: cannot open the till", "3%\r100%\nError: cannot open the till", id="progress bars"
    ),
    pytest.param(
        "FAILED tests/test_cart.py::test_sum - AssertionError: assert 3 == 4\n1 failed, 20 passed in 0.31s",
        "FAILED tests/test_cart.py::test_sum - AssertionErr...\n1 failed, 21 passed in 12.90s",
        id="width of the terminal, counts and durations",
    ),
    pytest.param(
        "FAILED tests/b.py::test_2\nFAILED tests/a.py::test_1",
        "FAILED tests/a.py::test_1\nFAILED tests/b.py::test_2",
        id="order of parallel tests",
    ),
    pytest.param(
        "--- FAIL: TestTotal (0.01s)\n    cart_test.go:12: got 3, want 4",
        "--- FAIL: TestTotal (2.40s)\n    cart_test.go:15: got 3, want 4",
        id="go",
    ),
    pytest.param(
        "Error: listen EADDRINUSE: address already in use :::3000",
        "Error: listen EADDRINUSE: address already in use :::41233",
        id="port",
    ),
    pytest.param(
        "2024-05-06T07:08:09.123Z [812] ERROR till: connection to 10.0.0.4:5432 refused",
        "[2025-11-30 23:59:59,001] [91] ERROR till: connection to 10.9.8.7:6543 refused",
        id="log prefix, pid, address",
    ),
    pytest.param(
        "ld: /tmp/ccQ1xYz9.o: undefined reference to `total'",
        "ld: /tmp/cc8KdPwA.o: undefined reference to `total'",
        id="temporary object",
    ),
    pytest.param(
        "OSError: no such file: '/tmp/tmp8x_k2q0z/till.db' in /tmp/tmp.Qw3rTy7UiO",
        "OSError: no such file: '/var/tmp/tmpab3d5f7h/till.db' in /tmp/tmp.ZzYyXx1122",
        id="temporary folders",
    ),
    pytest.param(
        "error: Command '['gcc', '-I/home/ann/.venv/include', 'fast.c']' failed",
        "error: Command '['gcc', '-I/opt/ci/env/include', 'fast.c']' failed",
        id="path of an option",
    ),
    pytest.param(
        "fatal: bad object 1f0c9a7d3b", "fatal: bad object 90aa17bc22d7e6f08812ab3490ffee0012345678", id="commit"
    ),
    pytest.param(
        "TypeError: <Cart object at 0x7f2b9c001d30> is not iterable",
        "TypeError: <Cart object at 0x10a3fe9d0> is not iterable",
        id="address in memory",
    ),
    pytest.param(
        "Error: request 7d1f2a34-0b1c-4d2e-8f90-aabbccddeeff failed",
        "Error: request 00000000-1111-4222-8333-444455556666 failed",
        id="uuid",
    ),
    pytest.param(
        "Found 3 errors in 2 files\na.py:1: error: Name 'x' is not defined",
        "Found 1 error in 1 file\na.py:8: error: Name 'x' is not defined",
        id="summary",
    ),
]

DIFFERENT = [
    pytest.param("ValueError: bad price", "TypeError: bad price", id="error class"),
    pytest.param("No module named 'flask'", "No module named 'django'", id="module"),
    pytest.param("sh: 1: ninja: not found", "sh: 1: cmake: not found", id="command"),
    pytest.param("Error: Cannot find module '@a/core'", "Error: Cannot find module '@b/core'", id="scoped package"),
    pytest.param("Expected 200 but got 404", "Expected 200 but got 500", id="compared values"),
    pytest.param("Process exited with code 1", "Process exited with code 137", id="exit code"),
    pytest.param("error[E0308]: mismatched types", "error[E0277]: mismatched types", id="error code"),
    pytest.param("FAILED tests/a.py::test_x", "FAILED tests/b.py::test_x", id="file of a test"),
    pytest.param("FAILED tests/a.py::test_x[1]", "FAILED tests/a.py::test_x[2]", id="parameter of a test"),
    pytest.param("src/a/index.js:1:1: error: no semicolon", "src/b/index.js:1:1: error: no semicolon", id="file"),
    pytest.param("/tmp/w/cart2.py:1: error: no", "/tmp/w/cart3.py:1: error: no", id="numbered files under /tmp"),
    pytest.param("No matching distribution for x==1.2.3", "No matching distribution for x==1.3.0", id="version"),
    pytest.param("a.py:1:1: F401 `os` unused", "a.py:1:1: F401 `re` unused", id="linter without the word error"),
    pytest.param("Der Zugriff wurde verweigert: kasse", "Die Datei fehlt: kasse", id="another language"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_failure_again_has_the_same_signature(one: str, other: str) -> None:
    assert normal_form(one) == normal_form(other)
    assert signature(one) == signature(other) != ""


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_another_failure_has_another_signature(one: str, other: str) -> None:
    assert signature(one) != signature(other)


def test_a_signature_is_readable() -> None:
    assert re.fullmatch(
        r"modulenotfounderror-no-module-named-till-[0-9a-f]{10}",
        signature("ModuleNotFoundError: No module named 'till'"),
    )
    assert signature("boom", kind="test_failed").startswith("test_failed-")


def test_nothing_to_go_by_is_no_signature() -> None:
    assert signature(" \n\x1b[0m\n") == ""
    assert signature("", kind="timeout") != ""


def test_kind_and_tests_belong_to_the_failure() -> None:
    assert signature("boom", kind="hang") != signature("boom", kind="killed")
    assert signature("boom", tests=["a.py::t1"]) != signature("boom", tests=["a.py::t2"])
    assert signature("boom", tests=["b", "a"]) == signature("boom", tests=["a", "b"])
    assert signature("boom", tests=["/x/tests/a.py::t"]) == signature("boom", tests=["/y/z/tests/a.py::t"])


def test_lines_are_taken_as_text() -> None:
    assert signature(["warming up", "Error: no till"]) == signature("warming up\nError: no till")


def test_warnings_successes_and_progress_around_the_error_do_not_matter() -> None:
    around = "collected 9 items\ntest_error_handling PASSED\nwarning: unused variable\n0 errors\n"
    assert normal_form(f"{around}ZeroDivisionError: division by zero\n") == "ZeroDivisionError: division by zero"


def test_a_syntax_error_is_known_by_its_file() -> None:
    text = '  File "/w/{}", line 3\n    if x\n        ^\nSyntaxError: invalid syntax\n'
    assert normal_form(text.format("cart.py")) == "cart.py: SyntaxError: invalid syntax"
    assert signature(text.format("cart.py")) != signature(text.format("till.py"))


def test_the_decisive_line_is_found_in_the_middle_of_ten_megabytes() -> None:
    chatter = "\n".join(f"[{n}] step {n} of many, all is well with /srv/shop/{n}.txt" for n in range(90_000))
    assert normal_form(f"{chatter}\nOSError: the till is shut\n{chatter}") == "OSError: the till is shut"
    assert normal_form(" " * 9_000_000 + "Error: x") == "Error: x"
    assert faster_than_linear([chatter, "error " * 300_000], normal_form) == []


HOSTILE = [
    "/",
    "a/",
    "\\",
    "C:\\",
    "'",
    "#",
    "1:",
    "12:34",
    "error: ",
    "FAILED a::b - ",
    "\x1b[",
    "\x1b]",
    "- ",
    "@",
    "(1,",
    "_",
]


def test_no_line_takes_more_than_linear_time() -> None:
    lines = [piece * 100_000 for piece in HOSTILE]
    assert faster_than_linear(lines, lambda line: signature(f"error: {line}\n" * 3 + f"FAILED x::{line}")) == []


def test_terminal_text_becomes_plain() -> None:
    assert shown("\x1b]0;title\x07a\x1b[2Kb\r\nc\x00\n50%\rdone\n") == "ab\nc\ndone"


# --- properties ------------------------------------------------------------------------------------

HEX = st.text("0123456789abcdef", min_size=8, max_size=40).filter(lambda text: any(char.isdigit() for char in text))
NAMES = st.text(string.ascii_lowercase, min_size=2, max_size=8)
NUMBERS = st.integers(0, 99_999)
ROOTS = st.builds(
    "{}/{}".format,
    st.sampled_from(["/home", "/tmp", "/Users", "/var/folders", "/builds"]),
    NAMES.filter(
        lambda name: name not in _ROOTS
    ),  # a home that is called `src` cannot be told from a folder of sources
)
TIMES = st.datetimes().map(lambda moment: moment.isoformat(sep=" "))
TEMPLATE = (
    "{time} worker {number}: run {hash} on port {number}\n"
    "{root}/src/shop/cart.py:{number}:{number}: error: Name {quote}total{quote} is not defined (took {number}.5s)\n"
    "Error: {root}/till.js failed at 0x{hash}, pid {number}\n"
    "FAILED tests/test_cart.py::test_total_2 - {quote}...\n"
    "{number} failed, {number} passed in {number}ms\n"
)


@st.composite
def run_of_one_failure(draw: st.DrawFn) -> str:
    """Fill every place of the template anew."""
    sources = {
        "time": TIMES, "number": NUMBERS, "hash": HEX, "root": ROOTS, "quote": st.just(draw(st.sampled_from("'\"`")))
    }  # fmt: skip
    text = re.sub(r"\{(\w+)\}", lambda place: str(draw(sources[place[1]])), TEMPLATE)
    return draw(st.sampled_from([text, text.replace("\n", "\r\n"), f"\x1b[31m{text}\x1b[0m"]))


@given(run_of_one_failure(), run_of_one_failure())
@settings(deadline=None)
def test_noise_never_changes_a_signature(one: str, other: str) -> None:
    assert normal_form(one) == normal_form(other)


ERRORS = st.sampled_from(["ValueError", "KeyError", "OSError", "TimeoutError", "pkg.CartError"])


@given(ERRORS, ERRORS, NAMES, NAMES, NAMES, NAMES)
@settings(deadline=None)
def test_class_test_and_module_are_the_failure(
    error: str, other_error: str, test: str, other_test: str, module: str, other_module: str
) -> None:
    def text(error: str, test: str, module: str) -> str:
        return f"FAILED tests/t.py::test_{test}\nE   {error}: no module named '{module}x'"

    same = (error, test, module) == (other_error, other_test, other_module)
    assert (signature(text(error, test, module)) == signature(text(other_error, other_test, other_module))) is same


PIECES = st.sampled_from(
    (
        "error ", "Error:", "FAILED ", "a::b", " - ", "/tmp/", "src/", "C:\\", "'", "`", "#", "12", "3.4", ":", "(1,2)", "line 3",
        "12:30", "2024-01-02", "0x1f", "deadbeef1", " ", "\n", "E ", "> ", "assert ", "expected ", "not ok ", "\u2715 ",
        "[gw1]", "me@box:~", "10.0.0.1:80", "5ms", "====", "a.py", "SyntaxError: x", "F401", "warning", "Found 3 errors",
        "failing test: ", "hint:", "\r", "npm error code", "status 404", "utf-8", "-1", "[", ")",
    )
)  # fmt: skip


@given(st.text() | run_of_one_failure() | st.lists(PIECES, max_size=14).map("".join))
@settings(max_examples=150, deadline=None)
def test_a_normal_form_is_its_own_normal_form(text: str) -> None:
    assert normal_form(normal_form(text)) == normal_form(text)


@given(st.binary().map(lambda raw: raw.decode(errors="surrogateescape")), st.lists(st.text()))
@settings(max_examples=150, deadline=None)
def test_any_text_has_a_signature(text: str, tests: list[str]) -> None:
    assert signature(text, tests=tests) == signature(text, tests=tests)
