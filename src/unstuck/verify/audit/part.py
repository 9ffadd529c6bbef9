"""Which part a path plays: the product, or one of the parts of its judge. What is not known to be product is the judge's."""

import re
from typing import Literal

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


_PARTS: tuple[tuple[Part, re.Pattern[str]], ...] = (
    ("ours", _(r"(?:^|/)(?:unstuck\.toml$|\.unstuck/)")),
    ("snapshot", _(r"(?:^|/)(?:__snapshots__|__image_snapshots__|snapshots?|goldens?|approved|cassettes)/|\.(?:snap|ambr|snapshot|golden|approved)(?:\.\w+)?$")),
    (
        "lock",
        _(r"(?:^|/)(?:[\w.-]*lock(?:\.\w+)?|go\.sum|npm-shrinkwrap\.json|packages\.lock\.json|gradle\.lockfile|Package\.resolved|constraints[\w.-]*\.txt)$"),
    ),
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
    (
        "settings",
        _(
            r"(?:^|/)(?:pyproject\.toml|setup\.cfg|setup\.py|tox\.ini|\.?pytest\.(?:ini|toml)|\.coveragerc|\.?ruff\.toml|\.?mypy\.ini|\.flake8|\.?pylintrc|pyrightconfig\.json|package\.json"
            r"|\.?(?:jest|vitest|vite|next|playwright|cypress|karma|ava|nyc|c8|babel|eslint|prettier|stylelint|biome|webpack|rollup|metro|wdio|knip)[\w.-]*\.conf(?:ig)?[\w.-]*\.(?:[cm]?[jt]s|json)"
            r"|vitest\.workspace\.[jt]s|biome\.jsonc?|[tj]sconfig[^/]*\.json|deno\.jsonc?|\.(?:mocharc|nycrc|c8rc|eslintrc|prettierrc|stylelintrc|swcrc|babelrc|taprc|jshintrc)(?:\.[^/]+)?"
            r"|\.[\w-]*ignore|\.gitattributes|\.npmrc|\.yarnrc[\w.]*|\.nvmrc|\.tool-versions|\.python-version|(?:[\w-]+-)?requirements[^/]*\.(?:txt|in)|\.?codecov\.ya?ml"
            r"|sonar-project\.properties|\.bandit|\.golangci\.ya?ml|go\.(?:mod|work)|Cargo\.toml|\.cargo/config(?:\.toml)?|nextest\.toml|\.?clippy\.toml|\.?rustfmt\.toml|\.rubocop[\w.]*\.ya?ml|\.rspec|\.simplecov"
            r"|Gemfile|[\w-]+\.gemspec|phpunit[\w.]*\.xml(?:\.dist)?|phpstan[\w.]*\.neon(?:\.dist)?|psalm\.xml|composer\.json|pom\.xml|(?:build|settings)\.gradle(?:\.kts)?|gradle\.properties|[\w.-]+\.gradle"
            r"|[\w.-]+\.(?:csproj|fsproj|vbproj|sln|props|targets|runsettings|ruleset)|\.editorconfig|mix\.exs|\.formatter\.exs|\.credo\.exs|coveralls\.json|Package\.swift|\.swiftlint\.ya?ml"
            r"|testng[\w.-]*\.xml|\.clang-(?:tidy|format)|\.detekt[\w.]*|detekt[\w.]*\.ya?ml|checkstyle[\w.]*\.xml|\.envrc)$"
        ),
    ),
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
    return next((part for part, shape in _PARTS if shape.search(path)), "unknown")


def is_judge(path: str) -> bool:
    """Tell whether a path belongs to what judges the product."""
    return part_of(path) not in {"product", "docs"}
