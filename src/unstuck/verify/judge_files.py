"""Tell which files of a change judge the product. What is not known to be product or prose is the judge's."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from unstuck.verify.tamper import Change

Part = Literal["product", "docs", "ours", "test", "unknown", "judge"]

_DOCS = re.compile(r"\.(?:md|rst|adoc|mdx)$|(?:^|/)(?:LICENSE|NOTICE|AUTHORS|CHANGELOG|README)[\w.-]*$", re.IGNORECASE)
_KNOWN = re.compile(
    r"(?:^|/)(?:\.npmrc|\.yarnrc[\w.]*|\.nvmrc|\.tool-versions|Cargo\.toml|\.cargo/config(?:\.toml)?|go\.(?:mod|work|sum)|Gemfile"
    r"|[\w.-]+\.(?:csproj|fsproj|sln|props|targets|runsettings|gradle(?:\.kts)?|gemspec)|pom\.xml|composer\.json|CMakeLists\.txt"
    r"|\.[\w-]*ignore|\.editorconfig|mix\.exs|Package\.swift|build\.rs|[\w.-]*lock(?:\.\w+)?)$|\.cmake$"
)
"""Settings and build files that the audit's own table of parts does not name."""
_CASES = re.compile(
    r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$|[._-](?:test|spec)\.[cm]?[jt]sx?$|_(?:test|spec)\.(?:go|rb|exs|c|cc|cpp)$"
    r"|(?:^|/)\w*(?:Tests?|IT|Spec|TestCase)\.(?:java|kt|scala|groovy|cs|php|swift)$|(?:^|/)tests/[\w-]+\.rs$"
)
"""Names that runners take for tests: a new one of these adds tests, and bends nothing."""


def part(path: str) -> Part:
    """Say what part a file plays."""
    from unstuck.verify.tamper.change import role  # noqa: PLC0415  # heavy: loaded when there is a change to judge

    known = role(path)
    if known in ("product", "ours", "test"):
        return known
    if known != "other" or _KNOWN.search(path):
        return "judge"
    return "docs" if _DOCS.search(path) else "unknown"


def is_judge(path: str) -> bool:
    """Whether a file belongs to what judges the product, or might."""
    return part(path) not in ("product", "docs", "ours")


def bent(changes: "Sequence[Change]", declared: Sequence[str]) -> "tuple[Change, ...]":
    """Return what a change does to the judge that the task does not name; new tests are none of it."""
    from unstuck.verify.tamper.change import is_declared  # noqa: PLC0415  # as above

    return tuple(
        change
        for change in changes
        if is_judge(change.path)
        and not is_declared(change.path, declared)
        and not (change.old is None and _CASES.search(change.path))
    )
