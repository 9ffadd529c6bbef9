"""What the tamper audit takes and gives: a file before and after, the part it plays, and a finding about it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Severity = Literal["reject", "ask", "warn"]
Role = Literal["test", "support", "snapshot", "golden", "testdata", "settings", "commands", "ours", "product", "other"]

SYMLINK = 0o120000
LONGEST = 200_000
"""Characters of a text that is still parsed; a longer one is judged by its lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path before and after. None is "does not exist"; a binary file that exists has an empty text."""

    path: str
    old: str | None = None
    new: str | None = None
    old_mode: int | None = None
    new_mode: int | None = None
    """As git writes them: 0o100644, 0o100755, 0o120000."""
    binary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing in a change that makes the checks say less than before."""

    rule: str
    severity: Severity
    path: str
    line: int
    says: str
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a text, numbered from 1."""

    number: int
    text: str


def role(path: str) -> Role:
    """Tell what part a path plays; the first row that fits decides."""
    return next((name for name, shape in _ROLES if shape.search(path)), "other")


def language(path: str) -> str:
    """Name the language of a path by its ending; empty when unknown."""
    return _LANGUAGES.get(path.rpartition(".")[2].lower(), "")


def collected(path: str, checks: Iterable[str] = ()) -> bool:
    """Tell whether a test runner with common settings, started as the checks start it, would look into this file."""
    name = path.rpartition("/")[2]
    known = language(path)
    if known not in {"python", "script"}:
        return True
    shape = _PYTHON_TEST if known == "python" else _SCRIPT_TEST
    if not shape.search(path if known == "script" else name) or _SHELVED.search(path):
        return False
    places = [place for command in checks for place in _test_places(command)]
    return not places or any(path == place or path.startswith(place + "/") for place in places)


def is_declared(path: str, declared: Iterable[str]) -> bool:
    """Tell whether a path is one of the declared ones, lies in a declared folder, or fits a declared pattern."""
    return any(_covers(place, path) for place in declared)


def added_lines(change: Change) -> Iterator[Line]:
    """Give the lines of the new text that the old one has fewer of. Order plays no part, so this is linear."""
    yield from _surplus(change.new, change.old)


def removed_lines(change: Change) -> Iterator[Line]:
    """Give the lines of the old text that the new one has fewer of."""
    yield from _surplus(change.old, change.new)


def _surplus(text: str | None, other: str | None) -> Iterator[Line]:
    spare = Counter(line.strip() for line in (other or "").splitlines())
    for number, line in enumerate((text or "").splitlines(), 1):
        bare = line.strip()
        if not bare:
            continue
        if spare[bare] > 0:
            spare[bare] -= 1
        else:
            yield Line(number, line)


def _covers(place: str, path: str) -> bool:
    clean = place.strip().strip("`").removeprefix("./").rstrip("/")
    if not clean:
        return False
    if path == clean or path.startswith(clean + "/"):
        return True
    if not re.search(r"[*?]", clean):
        return False
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", clean)
    table = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.fullmatch("".join(table.get(piece, re.escape(piece)) for piece in pieces), path) is not None


def _test_places(command: str) -> Iterator[str]:
    if not re.search(r"\b(?:pytest|jest|vitest|mocha)\b", command):
        return
    for word in command.split():
        clean = word.strip("'\"").removeprefix("./").split("::")[0].rstrip("/")
        if re.fullmatch(r"(?:tests?|spec|__tests__)(?:/[\w./-]*)?|[\w./-]+/(?:tests?|__tests__)", clean):
            yield clean


_LANGUAGES = {
    "py": "python", "pyi": "python",
    "js": "script", "jsx": "script", "mjs": "script", "cjs": "script",
    "ts": "script", "tsx": "script", "mts": "script", "cts": "script", "vue": "script", "svelte": "script",
    "go": "go", "rs": "rust", "java": "java", "kt": "java", "scala": "java", "groovy": "java", "rb": "ruby",
    "php": "php", "cs": "csharp", "swift": "swift", "ex": "elixir", "exs": "elixir", "c": "c", "cc": "c", "cpp": "c",
}  # fmt: skip

_PYTHON_TEST = re.compile(r"^(?:test.*|.*_test)\.py$")
_SCRIPT_TEST = re.compile(
    r"(?:(?:[._-](?:test|spec|tests|specs)|(?:^|/)(?:test|tests|spec))\.[cm]?[jt]sx?$)"
    r"|(?:(?:^|/)(?:__tests__|tests?|specs?)/(?:(?!fixtures|__mocks__|support|helpers).)*\.[cm]?[jt]sx?$)"
    r"|(?:(?:^|/)test-[^/]+\.[cm]?js$)"
)
_SHELVED = re.compile(
    r"(?:^|/)(?:archived?|attic|old|disabled|skipped?|deprecated|backups?|bak|trash|graveyard|quarantine|broken"
    r"|unused|wip|todo|scratch|tmp|node_modules|dist|build|\.[^/]+|_[^_/][^/]*)/"
)
_TESTS_FOLDER = r"(?:^|/)(?:tests?|specs?|__tests__|testing|test[_-][^/]+|[^/]+[_-]tests?|e2e|cypress)/"
_CODE = r"\.(?:py|pyi|[cm]?[jt]sx?|vue|svelte|go|rs|java|kt|scala|groovy|rb|php|cs|swift|exs?|c|cc|cpp|h|hpp|sh)$"

_ROLES: tuple[tuple[Role, re.Pattern[str]], ...] = (
    ("ours", re.compile(r"(?:^|/)(?:unstuck\.toml$|\.unstuck/)")),
    ("snapshot", re.compile(r"(?:^|/)(?:__snapshots__|__image_snapshots__|snapshots?)/|\.(?:snap|ambr|snapshot)$")),
    (
        "commands",
        re.compile(
            r"(?:^|/)(?:\.github/(?:workflows|actions)/|\.circleci/|\.buildkite/|\.husky/|\.githooks/|\.gitlab/ci/)"
            r"|(?:^|/)(?:\.gitlab-ci\.ya?ml|\.travis\.ya?ml|azure-pipelines[^/]*\.ya?ml|bitbucket-pipelines\.ya?ml"
            r"|Jenkinsfile|appveyor\.ya?ml|\.pre-commit-config\.ya?ml|lefthook\.ya?ml|(?:GNU)?[Mm]akefile|[Jj]ustfile"
            r"|(?:docker-)?compose[^/]*\.ya?ml|cloudbuild\.ya?ml|buildspec\.ya?ml|\.drone\.ya?ml|noxfile\.py|tasks\.py|Taskfile\.ya?ml|Rakefile)$"
            r"|\.mk$|\.(?:sh|bash|zsh)$|(?:^|/)(?:scripts?|bin|ci|tools)/[^/.]+$"
        ),
    ),
    (
        "settings",
        re.compile(
            r"(?:^|/)(?:pyproject\.toml|setup\.cfg|tox\.ini|pytest\.ini|\.pytest\.ini|pytest\.toml|\.coveragerc"
            r"|\.?ruff\.toml|\.?mypy\.ini|\.flake8|\.pylintrc|pylintrc|pyrightconfig\.json|package\.json"
            r"|\.?(?:jest|vitest|vite|next|playwright|cypress|karma|ava|nyc|c8|babel|eslint|prettier|stylelint|biome)"
            r"\.config\.(?:[cm]?[jt]s|json)|vitest\.workspace\.[jt]s|biome\.jsonc?|tsconfig[^/]*\.json|jsconfig\.json"
            r"|\.(?:mocharc|nycrc|c8rc|eslintrc|prettierrc|stylelintrc|swcrc|babelrc)(?:\.[^/]+)?"
            r"|\.(?:eslint|prettier|git|stylelint)ignore|\.gitattributes|(?:dev-|test-)?requirements[^/]*\.(?:txt|in)|\.?codecov\.ya?ml|sonar-project\.properties|\.bandit"
            r"|\.golangci\.ya?ml|clippy\.toml|\.rubocop\.ya?ml|\.rspec|phpunit\.xml(?:\.dist)?|phpstan\.neon)$"
        ),
    ),
    (
        "support",
        re.compile(
            r"(?:^|/)(?:conftest\.py|(?:tests?|__tests__)/__init__\.py|sitecustomize\.py|usercustomize\.py)$|\.pth$"
            r"|(?:^|/)(?:jest|vitest|test|tests|mocha)[._-]?(?:setup|globals?|env|environment)[^/]*\.[cm]?[jt]sx?$"
            r"|(?:^|/)(?:setup|global-?setup)[._-]?(?:tests?|jest|vitest|files?|after-?env)?\.[cm]?[jt]sx?$"
            r"|(?:^|/)__mocks__/",
            re.IGNORECASE,
        ),
    ),
    ("test", re.compile(r"(?:^|/)(?:test[_-][^/]*|tests?|[^/]*_tests?)\.pyi?$")),
    ("test", re.compile(r"[._-](?:test|spec|tests|specs)\.[cm]?[jt]sx?$|(?:^|/)(?:tests?|spec)\.[cm]?[jt]sx?$")),
    (
        "test",
        re.compile(
            r"_(?:test|spec)\.(?:go|rb|exs?|c|cc|cpp)$|(?:^|/)[A-Z]\w*(?:Tests?|IT|Spec|TestCase)\.(?:java|kt|scala|groovy|cs|php|swift)$"
            r"|(?:^|/)Test[A-Z]\w*\.(?:java|kt)$"
        ),
    ),
    ("golden", re.compile(r"(?:^|/)(?:goldens?|expected|approved|baselines?|cassettes)/|\.(?:golden|expected|approved)(?:\.\w+)?$")),
    ("test", re.compile(_TESTS_FOLDER + r"(?:.*/)?(?!__init__\.py)[^/]+" + _CODE)),
    ("golden", re.compile(_TESTS_FOLDER + r".*(?:golden|expected|approved|reference)[^/]*$", re.IGNORECASE)),
    ("testdata", re.compile(_TESTS_FOLDER + r"|(?:^|/)(?:testdata|fixtures|__fixtures__)/")),
    ("product", re.compile(_CODE)),
)  # fmt: skip
