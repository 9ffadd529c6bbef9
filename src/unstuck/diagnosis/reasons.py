"""Tell for which reason a test run fails: because something is asserted, because the work is missing, or by a mistake."""

import re
from collections.abc import Iterable
from typing import Literal

Reason = Literal["asserted", "missing", "mistaken"]

_MISTAKEN = re.compile(
    r"\bSyntaxError\b|\bIndentationError\b|\bTabError\b|Transform failed|Unexpected token|fixture '[^'\n]*' not found"
    r"|no tests ran|no tests? found|not found: \S+::|unrecognized arguments|ERR_MODULE_NOT_FOUND.*node_modules"
)
_ASSERTED = re.compile(
    r"\bAssertionError\b|^E +assert\b|ERR_ASSERTION|\bexpect\(|\bExpected\b(?:.*\n)?.*\bReceived\b|- assert\b|Failed: DID NOT RAISE"
    r"|\bassertion .*failed|--- FAIL:",
    re.MULTILINE,
)
_GONE = re.compile(
    r"cannot import name '[\w.]+'|No module named '(?P<module>[\w.]+)'|has no attribute '\w+'|name '\w+' is not defined"
    r"|Cannot find module '(?P<file>[^'\n]+)'|[\w.] is not a function|\w is not defined"
    r"|does not provide an export named '\w+'|NotImplementedError"
)


def reason(output: str, expected: Iterable[str] = ()) -> Reason:
    """Say why a test run failed. A missing module counts as missing work only if `expected` texts speak of it."""
    if _MISTAKEN.search(output):
        return "mistaken"
    if _ASSERTED.search(output):
        return "asserted"
    spoken = "\n".join(expected)
    for found in _GONE.finditer(output):
        module = found["module"] or found["file"]
        if module is None or re.search(rf"\b{re.escape(_stem(module))}\b", spoken):
            return "missing"
    return "mistaken"


def _stem(module: str) -> str:
    """Return what a plan would call a module: the last part of its name, without folders and ending."""
    last = module.rstrip("/").rpartition("/")[2]
    return last.split(".")[0] if "/" in module else last.rpartition(".")[2]
