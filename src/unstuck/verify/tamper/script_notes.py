"""Find in a JavaScript text what is suspicious in itself: exits, overridden matchers, test detection."""

import re
from collections.abc import Iterator

from unstuck.verify.tamper.change import Role
from unstuck.verify.tamper.script_tokens import Script

Note = tuple[str, int, str]

_SIGNALS = frozenset({"SIGTERM", "SIGINT", "SIGHUP", "exit", "beforeExit"})
_ASSERTING = re.compile(
    r"^(?:equal|strictEqual|deepEqual|deepStrictEqual|ok|toBe|toEqual|toStrictEqual|throws|AssertionError)$"
)
_ENVIRONMENT = frozenset(
    {"NODE_ENV", "JEST_WORKER_ID", "VITEST", "VITEST_WORKER_ID", "NODE_TEST_CONTEXT", "MOCHA", "TEST_ENV"}
)


def script_notes(script: Script, path: str, role: Role) -> Iterator[Note]:
    """Give every suspicious thing; the caller tells which of them are new."""
    is_program = _is_program(script, path)
    for at, token in enumerate(script.tokens):
        word, line = token.text, token.line
        if word in {"exit", "reallyExit"} and script.text(at - 2) == "process" and script.text(at + 1) == "(":
            yield from _exit(script, at, role, is_program=is_program)
        elif (
            word == "exitCode"
            and script.text(at - 2) == "process"
            and script.text(at + 1) == "="
            and script.text(at + 2) == "0"
        ):
            yield "early-exit" if role in {"test", "support"} else "possible-early-exit", line, "process.exitCode = 0"
        elif (
            word == "="
            and _ASSERTING.match(script.text(at - 1))
            and script.text(at - 2) == "."
            and script.text(at - 3) in {"assert", "expect", "prototype", "matchers", "Assertion"}
        ):
            yield "assertions-overridden", line, f"{script.text(at - 3)}.{script.text(at - 1)}"
        elif (
            word == "="
            and script.text(at - 1) in {"expect", "assert"}
            and script.text(at - 2) in {".", "const", "let", "var"}
            and role in {"test", "support"}
        ):
            yield from _own_expect(script, at)
        elif word == "function" and script.text(at + 1) in {"expect", "assert"} and role in {"test", "support"}:
            yield "assertions-overridden", line, f"function {script.text(at + 1)}"
        elif word == "extend" and script.text(at - 2) == "expect":
            names = [script.text(one) for one in range(at, min(script.end(at + 1), len(script.tokens)))]
            if any(_ASSERTING.match(name) for name in names):
                yield "assertions-overridden", line, "expect.extend"
        elif word == "asymmetricMatch" or (word == "toPrimitive" and role == "product"):
            yield "equality-overridden", line, word
        elif word in {"retryTimes", "retries"} and script.text(at + 1) == "(" and role in {"test", "support"}:
            yield "test-retried", line, f"{word}({script.text(at + 2)})"
        elif role == "product":
            yield from _detection(script, at)


def _exit(script: Script, at: int, role: Role, *, is_program: bool) -> Iterator[Note]:
    code = script.text(at + 2)
    if code not in {"0", ")"}:
        return
    text = f"process.exit({code})".replace("))", ")")
    if role in {"test", "support"}:
        yield "early-exit", script.tokens[at].line, text
    elif role == "product" and not is_program:
        near = {script.tokens[one].value for one in range(max(0, at - 40), at)}
        if not near & _SIGNALS:
            yield "possible-early-exit", script.tokens[at].line, text


def _own_expect(script: Script, at: int) -> Iterator[Note]:
    if script.text(at + 1) in {"require", "chai", "await", "import"}:
        return
    window = [script.text(one) for one in range(at + 1, min(at + 12, len(script.tokens)))]
    if "=>" in window or "function" in window or "Proxy" in window:
        yield "assertions-overridden", script.tokens[at].line, f"{script.text(at - 1)} = ..."


def _detection(script: Script, at: int) -> Iterator[Note]:
    word = script.text(at)
    compared = (
        script.text(at - 2) == "env"
        and script.text(at + 1) in {"===", "=="}
        and script.tokens[min(at + 2, len(script.tokens) - 1)].value == "test"
    )
    if compared or word in _ENVIRONMENT or script.tokens[at].value in _ENVIRONMENT:
        window = [script.tokens[one].value or script.text(one) for one in range(at, min(at + 4, len(script.tokens)))]
        about_tests = (word != "NODE_ENV" and script.tokens[at].value != "NODE_ENV") or "test" in window
        if not about_tests:
            return
        after = [script.text(one) for one in range(at, min(at + 14, len(script.tokens)))]
        turned = "!==" in window or "!=" in window or script.text(at - 5) == "!"
        answers = "return" in after or "?" in after or ("=" in after and not turned)
        if answers:
            yield "test-detected", script.tokens[at].line, " ".join(after)
    elif word == "typeof" and script.text(at + 1) in {"jest", "vi", "describe", "it", "expect"}:
        yield "test-detected", script.tokens[at].line, f"typeof {script.text(at + 1)}"
    elif (
        word in {"jest", "__vitest_worker__", "__jest__"}
        and script.text(at - 1) == "."
        and script.text(at - 2) in {"global", "globalThis", "window"}
    ):
        yield "test-detected", script.tokens[at].line, f"global.{word}"


def _is_program(script: Script, path: str) -> bool:
    if re.search(r"(?:^|/)(?:bin|cli|scripts?|tools)(?:/|\.|$)|(?:^|/)(?:main|server|index|worker)\.[cm]?[jt]s$", path):
        return True
    return any(
        (token.text == "argv" and script.text(at - 2) == "process")
        or token.value in {"commander", "yargs", "node:util"}
        for at, token in enumerate(script.tokens)
    ) or (script.text(0) == "#" or script.text(0).startswith("#!"))
