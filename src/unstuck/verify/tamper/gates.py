"""The vocabulary of gates: which settings of which tool ask for more, and which for less."""

import re

NO_GATE = re.compile(
    r"^(?:scripts|dependencies|devdependencies|peerdependencies|project|build-system|name|version|description|repository|author|keywords|engines)(?:\.|$)|\.(?:dependencies|classifiers)\b",
    re.IGNORECASE,
)
MINIMUM = re.compile(
    r"fail[_-]under|coveragethreshold|thresholds?(?:\.|$)|min[_-]?coverage|check-coverage|^(?:branches|functions|lines|statements)$|status\.\w+\.\w*\.?target|\.target$|interrogate",
    re.IGNORECASE,
)
MAXIMUM = re.compile(
    r"max[_-]?(?:complexity|warnings|args|branches|statements|returns|locals|attributes|nested|bool|positional|public|parents|depth|lines)|(?:^|\.)(?:test|hook)?timeout$",
    re.IGNORECASE,
)
IGNORES = re.compile(
    r"(?:^|\.)(?:omit|exclude|extend-exclude|force-exclude|ignore|extend-ignore|(?:extend-)?per-file-ignores(?:\..*)?|disable|disable_error_code|exclude_lines"
    r"|exclude_also|ignorepatterns|ignores|coveragepathignorepatterns|testpathignorepatterns|modulepathignorepatterns|norecursedirs"
    r"|exclude_dirs|skips|unfixable|ignore-words-list|ignored-modules|ignored-classes|ignore-paths|ignore-patterns|watchpathignorepatterns)$",
    re.IGNORECASE,
)
CHOICES = re.compile(
    r"(?:^|\.)(?:select|extend-select|enable|enable_error_code|collectcoveragefrom|extends|plugins|files|packages|source|source_pkgs)$",
    re.IGNORECASE,
)
COLLECTS = re.compile(
    r"(?:^|\.)(?:testpaths|python_files|python_functions|python_classes|testmatch|testregex|include|roots|projects|spec|test\.include|testdir)$",
    re.IGNORECASE,
)
STRICT = re.compile(
    r"(?:^|\.)(?:strict\w*|disallow_\w+|check_untyped_defs|warn_\w+|no_implicit_\w+|noimplicit\w+|nounused\w+|nounchecked\w+|nofallthrough\w+|checkjs|xfail_strict"
    r"|branch|alwaysstrict|useunknownincatchvariables|exactoptionalpropertytypes|preview|noemitonerror|errorondeprecated|all)$",
    re.IGNORECASE,
)
LAX = re.compile(
    r"(?:^|\.)(?:ignore_errors|ignore_missing_imports|skiplibcheck|passwithnotests|allow_untyped_\w+|exit-zero|testfailureignore|ignoretestfailures"
    r"|dangerouslyignoreunhandlederrors|allowonly|ignorebuilderrors|ignoreduringbuilds|transpileonly|informational|ignore_outcome|continue_on_failure|implicit_reexport|skip_covered_fail|no-fail)$",
    re.IGNORECASE,
)
RETRIES = re.compile(r"(?:^|\.)(?:retry|retries|reruns|retrytimes)$", re.IGNORECASE)
OPTIONS = re.compile(
    r"(?:^|\.)(?:addopts|args|commands|command|cmd|pytest_args|additional_args|(?:scripts|tasks)\.[\w.:-]+)$",
    re.IGNORECASE,
)
HOOKS = re.compile(r"^(?:lint-staged|husky|simple-git-hooks|pre-commit|pre-push)(?:\.|$)")
ARTEFACT = re.compile(
    r"(?:^|[/*^!'\"])(?:dist|build|out|node_modules|coverage|\.?venv|env|\.next|\.nuxt|\.turbo|\.cache|vendor|migrations|generated|__generated__|__pycache__|\.git|\.tox|\.nox|lib|public|htmlcov|\.\w+_cache|\.\w+-cache|test-results?|test-reports?|playwright-report|storybook-static|_version\.py|\.svelte-kit|target|site)(?:$|[/*.'\"])"
    r"|\.(?:min\.js|d\.ts|lock|generated\.\w+|pb2?\.py|log|pyc)$|_pb2",
    re.IGNORECASE,
)
HARMLESS = re.compile(
    r"TYPE_CHECKING|__repr__|NotImplementedError|__main__|pragma: no cover|abstractmethod|\.\.\.$|Protocol|overload"
)
UNMEASURED = re.compile(
    r"^(?:\*+/)?(?:tests?(?:/.*)?|conftest\.py|setup\.py|manage\.py|.*__main__\.py|_version\.py|test_\*(?:\.py)?)$"
)
"""What nobody measures the coverage of."""
FOR_TESTS = re.compile(r"^(?:S101|S10[5-8]|PLR2004|INP001|SLF001|E501|D\d*|ANN\d*|ARG\d*|FBT\d*)$")
"""Lint rules that make no sense in tests."""
ASSETS = re.compile(r"css|less|scss|sass|svg|png|jpg|gif|ttf|woff|@/|\^~|\(\.\*\)", re.IGNORECASE)
RUFF_CONFLICTS = frozenset(
    {
        "COM812",
        "ISC001",
        "D203",
        "D212",
        "D213",
        "W503",
        "E203",
        "W191",
        "E111",
        "E114",
        "E117",
        "Q000",
        "Q001",
        "Q002",
        "Q003",
    }
)
