"""Which part a path plays: the product, or one of the parts of its judge. What is not known to be product is the judge's."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal

from unstuck.tools import judges

Part = Literal[
    "product", "docs", "test", "support", "snapshot", "testdata", "settings", "commands", "lock", "ours", "unknown"
]

_TESTS = r"(?:^|/)(?:tests?|specs?|__tests__|testing|test[_-][^/]+|[^/]+[_-](?:tests?|specs?)|e2e|cypress|[A-Z]\w*Tests?|[\w.]+\.(?:[\w.]*\.)?(?:Unit)?Tests?|src/\w*[tT]est|t)/"
_CODE = r"\.(?:py|pyi|[cm]?[jt]sx?|vue|svelte|astro|go|rs|java|kts?|scala|groovy|rb|php|phpt|cs|fs|vb|swift|exs?|erl|c|cc|cpp|cxx|h|hh|hpp|hxx|m|mm|dart|lua|pl|pm|t|r|jl|hs|ml|clj|zig|nim|sql|proto|graphql)$"
_SHOWN = (
    r"\.(?:css|s[ac]ss|less|html?|hbs|ejs|erb|twig|j2|jinja2?|tmpl|svg|png|jpe?g|gif|ico|webp|woff2?|ttf|po|pot|mo)$"
)


def _(pattern: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(pattern, flags)


@cache
def _parts() -> tuple[tuple[Part, re.Pattern[str]], ...]:
    """Return the rows, the first that fits decides; which settings and locks a stack has, its own table says."""
    settings, locks = judges()
    own: Mapping[Part, str] = {"settings": settings, "lock": locks}
    return tuple(
        (part, re.compile(rf"(?:^|/)(?:{own[part]})$") if shape is _OF_THE_STACKS else shape) for part, shape in _PARTS
    )


_OF_THE_STACKS = _(r"(?!)")
_PARTS: tuple[tuple[Part, re.Pattern[str]], ...] = (
    ("ours", _(r"(?:^|/)(?:unstuck\.toml$|\.unstuck/)")),
    ("snapshot", _(r"(?:^|/)(?:__snapshots__|__image_snapshots__|snapshots?|goldens?|approved|cassettes)/|\.(?:snap|ambr|snapshot|golden|approved)(?:\.\w+)?$")),
    ("lock", _OF_THE_STACKS),
    (
        "commands",
        _(
            r"(?:^|/)(?:\.github/(?:workflows|actions)/|\.circleci/|\.buildkite/|\.husky/|\.githooks/|\.gitlab/ci/)"
            r"|(?:^|/)(?:\.gitlab-ci\.ya?ml|\.travis\.ya?ml|azure-pipelines[^/]*\.ya?ml|bitbucket-pipelines\.ya?ml|Jenkinsfile|appveyor\.ya?ml"
            r"|\.pre-commit-config\.ya?ml|lefthook\.ya?ml|(?:GNU)?[Mm]akefile[\w.]*|[Jj]ustfile|(?:docker-)?compose[^/]*\.ya?ml|cloudbuild\.ya?ml|buildspec\.ya?ml"
            r"|\.drone\.ya?ml|noxfile\.py|tasks\.py|Taskfile\.ya?ml|Rakefile|gulpfile\.[jt]s|Gruntfile\.js|Dockerfile[\w.]*|CMakeLists\.txt|meson\.build|BUILD(?:\.bazel)?"
            r"|WORKSPACE|build\.rs|build\.sbt|gradlew|mvnw|dune|SConstruct)$|\.(?:mk|cmake|sh|bash|zsh|bat|ps1)$|(?:^|/)(?:scripts?|ci|tools)/[^/.]+$"
        ),
    ),
    ("settings", _OF_THE_STACKS),
    (
        "support",
        _(
            r"(?:^|/)(?:conftest\.py|(?:tests?|__tests__)/__init__\.py|sitecustomize\.py|usercustomize\.py|(?:spec|test|rails|minitest)_helper\.rb|test_helper\.exs|TestMain\.\w+)$|\.pth$"
            r"|(?:^|/)(?:jest|vitest|tests?|mocha)[._-]?(?:setup|globals?|env|environment|helpers?|utils?)[^/]*\.[cm]?[jt]sx?$"
            r"|(?:^|/)(?:setup|global-?setup)[._-]?(?:tests?|jest|vitest|files?|after-?env)?\.[cm]?[jt]sx?$|(?:^|/)__mocks__/",
            re.IGNORECASE,
        ),
    ),
    ("settings", _(r"^(?!(?:.*/)?src/)(?:.*/)?(?:[^/]+\.config|[^/]+\.conf|wallaby|rector|ecs|conanfile)\.(?:[cm]?[jt]s|py|php|exs?)$|(?:^|/)\.[^/]+" + _CODE + r"|(?:^|/)\.[^/.][^/]*/.*" + _CODE)),
    ("test", _(r"(?:^|/)(?:test[_-][^/]*|tests?|[^/]*_tests?)\.pyi?$|[._-](?:test|spec|tests|specs)\.[cm]?[jt]sx?$|(?:^|/)(?:tests?|spec)\.[cm]?[jt]sx?$")),
    (
        "test",
        _(
            r"[_-](?:test|tests|spec|unittest)\.(?:go|rb|exs?|c|cc|cpp|cxx|rs|dart|php)$|(?:^|/)\w*(?:Tests?|IT|Specs?|TestCase)\.(?:java|kt|scala|groovy|cs|php|swift|cc|cpp)$"
            r"|(?:^|/)Test[A-Z]\w*\.(?:java|kt|cs|cpp)$|(?:^|/)(?:test|tests|unittest)s?[_-]?[^/]*\.(?:c|cc|cpp|cxx|rs|rb)$"
        ),
    ),
    ("snapshot", _(_TESTS + r".*(?:golden|expected|approved|reference|baseline)[^/]*(?:/.*)?$", re.IGNORECASE)),
    ("testdata", _(r"(?:^|/)(?:testdata|test[_-]?data|fixtures?|__fixtures__)/(?!.*(?:[._](?:test|spec)\.|/test_))")),
    ("test", _(_TESTS + r"(?:.*/)?[^/]+" + _CODE)),
    ("testdata", _(_TESTS)),
    ("docs", _(r"\.(?:md|rst|adoc|mdx|tex)$|(?:^|/)(?:LICENSE|NOTICE|AUTHORS|CHANGELOG|CHANGES|NEWS|README|COPYING)[\w.-]*$|(?:^|/)docs?/", re.IGNORECASE)),
    ("product", _(_CODE)),
    ("product", _(_SHOWN)),
    ("product", _(r"(?:^|/)(?:src|lib|app|apps|packages|public|static|assets|resources|templates|data|locales?|i18n|include)/(?!.*/\.)(?:.*/)?[^/.][^/]*\.(?:json|ya?ml|toml|xml|csv|txt|properties|ini)$")),
)  # fmt: skip


def part_of(path: str) -> Part:
    """Tell what part a path plays; the first row that fits decides."""
    return next((part for part, shape in _parts() if shape.search(path)), "unknown")


def is_judge(path: str) -> bool:
    """Tell whether a path belongs to what judges the product."""
    return part_of(path) not in {"product", "docs"}
