"""What a command is for, whichever tool and launcher it is done with: checking, installing, or tidying up."""

import re
from collections.abc import Iterable

_FAMILIES = (
    ("tests", r"pytest|py\.test|unittest|nose2?|tox|nox|jest|vitest|mocha|ava|tap|node --test|bun test|react-scripts test|ng test|karma|playwright|cypress"),
    ("lint", r"flake8|pylint|ruff(?![ -]format)|eslint|oxlint|biome (?:lint|check|ci)|tslint|standard|xo"),
    ("format", r"black|isort|yapf|autopep8|ruff[ -]format|prettier|biome (?:format|check|ci)|dprint"),
    ("types", r"mypy|pyright|basedpyright|pytype|ty check|tsc|vue-tsc|flow"),
    ("coverage", r"coverage|nyc|c8"),
    ("hooks", r"pre-commit|lefthook|lint-staged"),
)  # fmt: skip
_TOOLS = tuple((name, re.compile(rf"(?<![\w./-])(?:{words})(?![\w/-])")) for name, words in _FAMILIES)
_TARGET = re.compile(
    r"(?:^|[\s;&|(])(?:(?:npm|pnpm|yarn|bun)(?:\s+run)?|make|just|task|invoke|hatch run|npx nx run)\s+(?:-\S+\s+)*([\w:.-]+)"
)
_TARGETS = (
    ("tests", re.compile(r"^(?:t|tests?|unit|spec|e2e|integration)(?:[:._-]|$)|[:._-]tests?$")),
    ("lint", re.compile(r"^(?:lint|eslint|check)(?:[:._-]|$)|[:._-]lint$")),
    ("format", re.compile(r"^(?:format|fmt|prettier)(?:[:._-]|$)")),
    ("types", re.compile(r"^(?:types?|type-?check|tsc|mypy)(?:[:._-]|$)")),
)
_LAUNCHER = re.compile(
    r"(?:npx|bunx|pnpm exec|pnpm dlx|yarn exec|yarn dlx|uv run|poetry run|pipenv run|pdm run|hatch run|hatch test|rye run|python[\d.]* -m|py -m|\$[({]\w+[)}](?: -m)?"
    r"|(?:\./)?node_modules/\.bin/|cross-env|env)\s*(?:--\s+)?"
)
_INSTALLS = re.compile(
    r"\b(?:npm (?:ci|i|install)|pnpm (?:i|install)|yarn(?: install)?(?=\s*(?:$|--))|bun install|pip3? install|pip3? sync|uv (?:sync|pip|venv|tool|python)"
    r"|poetry install|pdm install|pipenv (?:install|sync)|corepack|apt(?:-get)? |brew |playwright install|cargo install|go install)"
)
_TIDIES = re.compile(
    r"(?:(?<=&&)|(?<=;)|(?<=\n)|^|(?<=run:)|(?<=then)|(?<=do))[ \t\"'@-]*(?:sudo )?(?:rm|rmdir|mkdir|kill|pkill|killall|docker|docker-compose|podman|cp|mv|ln|touch|find|git|curl|wget|rimraf|del|taskkill|lsof|umount|systemctl|echo|printf|cat|ls|chmod|which|command -v)\b[^&;\n|]*(?:\|(?!\|)[^&;\n|]*)*(?:\|\|[ \t]*(?:true|:|exit 0|echo[^\n&;|]*|printf[^\n&;|]*))?",
    re.MULTILINE,
)
_WIDE_PLACE = re.compile(
    r"^[\"']?(?:\./)?(?:\.|src|source|lib|libs|app|apps|packages|tests?|spec|__tests__|\*\*?)(?:/\*\*?(?:/[\w.*{},]+)?)?/?[\"']?$"
)

_SUBCOMMANDS = frozenset(
    {"run", "check", "test", "lint", "format", "exec", "npm", "pnpm", "yarn", "bun", "node", "make", "just", "ci", "&&"}
)


def without_tidying(text: str) -> str:
    """Leave out the commands that tidy up: nobody minds when `rm` or `docker stop` fails."""
    return _TIDIES.sub("", text) if len(text) < 20_000 else text  # noqa: PLR2004 - no command is that long


def installs(command: str) -> bool:
    """Tell whether a command only puts tools in place."""
    return _INSTALLS.search(command) is not None and not families(_INSTALLS.sub("", command))


def families(command: str) -> frozenset[str]:
    """Name the kinds of checking that a command does."""
    named = {name for name, shape in _TOOLS if shape.search(command)}
    for target in _TARGET.findall(command):
        if any(shape.search(target) for _, shape in _TOOLS):
            continue  # `yarn eslint` is the tool itself
        named |= {name for name, shape in _TARGETS if shape.search(target)}
    return frozenset(named)


def does_the_same(before: str, after: str) -> bool:
    """Tell whether another tool or launcher does the same work on as much."""
    wanted = families(before)
    if not wanted or not wanted <= families(after):
        return False
    had = set(_words(before))
    return all(
        word in had or _WIDE_PLACE.match(word) or word in _SUBCOMMANDS or families(word) for word in _words(after)
    )


def _words(command: str) -> Iterable[str]:
    bare = _LAUNCHER.sub("", command)
    return (word for word in bare.split() if not word.startswith("-") and "=" not in word and "{{" not in word)
