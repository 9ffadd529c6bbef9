"""Say what a command is for, and which of its exit codes are answers."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from unstuck.tools.shell import programs

if TYPE_CHECKING:
    from unstuck.diagnosis import Evidence

Role = Literal["test", "lint", "types", "format", "build", "install", ""]
"""What a command is for. Decides what a finding is called where the output does not say."""

SUBCOMMANDS: Sequence[tuple[Role, str]] = (
    ("format", r"^(?:ruff|cargo|mix|dart|dotnet|terraform|tofu|zig|deno|biome|buf|go|hcl|packer|forge|cue|rome)\s+(?:fmt|format)\b"),
    ("format", r"^(?:npm|yarn|pnpm|bun|make|poe|hatch|task|nx|gradlew?|mvnw?|just)\s.*(?:fmt|format|spotless|prettier)"),
    ("types", r"^(?:ty|astro|glint|deno|gleam)\s+check\b|^mix\s+dialyzer\b|^tsc\b.*--no[eE]mit\b"),
    ("types", r"^(?:npm|yarn|pnpm|bun|make|poe|task|hatch|just)\s.*(?:type-?check|\btypes\b|\btsc\b)"),
    ("lint", r"^(?:biome|rome)\s+(?:check|ci|lint)\b|^cargo\s+(?:\+\S+\s+)?(?:clippy|deny|audit|machete|udeps)\b|^go\s+vet\b"),
    ("lint", r"^(?:npm|yarn|pnpm)\s+audit\b|^mix\s+credo\b|^(?:dart|flutter)\s+analyze\b|^\S+\s+(?:run\s+)?[\w:]*lint(?=[\s:]|$)"),
    ("lint", r"^(?:mvnw?|gradlew?)\s.*(?:checkstyle|pmd|spotbugs|detekt|ktlint|lint)|^(?:grunt|gulp|nx|lerna|turbo|moon|rush|inv|invoke)\s.*(?:lint|[ej]shint|jscs)"),
    ("test", r"^\S+\s+(?:-\S+\s+)*(?:run\s+|exec\s+)?(?:test|tests|spec|eunit|ct|runtest|doctest|vitest|jest|e2e)(?=[\s:]|$)"),
    ("test", r"^(?:mvnw?|gradlew?|sbt|lein|bazel|bazelisk|xcodebuild|dotnet|swift|mill|ant)\s.*\b(?:\w*[tT]est\w*|verify|check)\b"),
    ("test", r"^(?:npm|yarn|pnpm|bun|rake|make|just|task|grunt|gulp|nx|lerna|turbo|moon|rush|inv|invoke)\s.*\b(?:test\S*|spec)\b|^make\s+check\b|^(?:run[_-]?tests?|test)\.(?:sh|py)\b"),
    ("install", (r"^(?:pip[\d.]*|uv|poetry|pdm|conda|mamba|npm|pnpm|yarn|bun|gem|bundle|composer|cargo|go|apt|apt-get|dnf|yum|apk|pacman"
                r"|zypper|brew|nuget|dotnet|cpan|cpanm|luarocks|mix|rebar3|cabal|stack|opam|nimble|shards|pub|flutter|dart|conan|pod|vcpkg|carthage|bower|pipenv|hatch|pixi|micromamba|asdf|mise|rustup|tlmgr|pipx|jspm|deno|snap|flatpak|choco|winget|scoop)\s+(?:\S+\s+)?"
                r"(?:install|i|ci|add|sync|get|restore|require|update|upgrade|download|fetch|deps\.get|mod|lock|create|search|-S)\b|^(?:cpanm|cpan)\s+\w")),
    ("build", (r"^(?:dotnet|swift|zig|mix|cargo|go|flutter|dart|docker|podman|nix|npm|yarn|pnpm|bun|gleam|forge|hugo|stack|cabal)"
              r"\s+(?:run\s+)?(?:build|publish|compile|run|check|c|install)\b|^node\s+--check\b|^(?:ruby|perl)\s+-\w*c\b|^php\s+-l\b|^(?:ba|z|da)?sh\s+-n\b")),
)  # fmt: skip
"""Where a program has many uses; the first that fits counts, before the names below."""

PROGRAMS: Mapping[Role, str] = {
    "format": """black isort prettier prettierd yapf autopep8 gofmt gofumpt goimports rustfmt clang-format dprint shfmt nixfmt
        alejandra stylua scalafmt google-java-format swiftformat ocamlformat ormolu fourmolu brittany taplo pint php-cs-fixer
        ktfmt docformatter blue standardrb djhtml cmake-format gersemi mdformat buildifier treefmt oxfmt nimpretty fantomas
        csharpier elm-format""",
    "types": """mypy dmypy pyright basedpyright pyre pytype pyrefly vue-tsc flow phpstan psalm phan srb steep dialyzer tsd
        svelte-check zuban sorbet""",
    "lint": """flake8 ruff pycodestyle pydocstyle bandit shellcheck rubocop phpcs phpmd checkstyle pmd spotbugs detekt
        staticcheck cppcheck clang-tidy codespell vale standard xo semgrep trivy tfsec checkov terrascan kube-score conftest
        vulture radon xenon interrogate typos luacheck selene perlcritic mdl alex write-good pre-commit lefthook reek brakeman
        errcheck gosec govulncheck revive spectral knip depcheck madge reuse gitleaks detect-secrets proselint tidy doc8 rstcheck
        pip-audit safety refurb pyflakes prospector slither dockle polaris deptry scalafix cspell misspell
        editorconfig-checker check-jsonschema htmlproofer lychee linkchecker cookstyle jshint htmlhint djlint
        dotenv-linter""",
    "test": """pytest py.test unittest jest vitest mocha ava tap tape karma cypress playwright rspec minitest phpunit pest
        paratest codecept behat ctest nextest nosetests nose2 tox nox behave cucumber cucumber-js bats busted prove ginkgo
        gotestsum testcafe nightwatch wdio robot green ward hurl newman k6 jasmine qunit uvu c8 nyc trial stestr doctest
        schemathesis test_runner""",
    "build": """gcc g++ cc c++ c99 clang clang++ ld ld.lld mold ar as nasm make gmake cmake ninja samu meson rustc javac kotlinc
        scalac scala-cli sbt mvn mvnw gradle gradlew ant mill groovyc msbuild csc fsc vbc swiftc xcodebuild ghc runghc dune
        ocaml ocamlc ocamlopt ocamlfind webpack vite rollup rolldown esbuild parcel turbo next nuxt remix astro gatsby ng tsc tsup swc
        babel rspack bazel bazelisk buck2 pants scons waf elixirc elixir erlc gfortran flang fpc ldc2 dmd gdc crystal protoc buf flatc
        thrift capnp sass lessc postcss mkdocs sphinx-build jekyll eleventy zola pdflatex xelatex lualatex latexmk tectonic
        typst elm purs spago idris2 agda lean lake coqc gnatmake gprbuild iverilog verilator yosys ghdl nvcc hipcc emcc wasm-pack
        maturin build py_compile compileall cython nuitka rpmbuild makepkg nix-build odin hare tinygo solc hardhat scarb nim
        tsx ts-node""",
}  # fmt: skip

IDLE = frozenset(
    [
        "cat",
        "ls",
        "cd",
        "rm",
        "mkdir",
        "rmdir",
        "cp",
        "mv",
        "ln",
        "echo",
        "printf",
        "head",
        "tail",
        "less",
        "more",
        "touch",
        "chmod",
        "chown",
        "tee",
        "source",
        ".",
        "export",
        "test",
        "[",
        "true",
        "false",
        "sleep",
        "wc",
        "sort",
        "pwd",
        "git",
        "curl",
        "wget",
        "ssh",
        "scp",
        "rsync",
    ]
)
"""Programs whose arguments say nothing about what they are for."""

ANSWERS: Sequence[tuple[str, tuple[int, ...]]] = (
    (r"^(?:[efz]?grep|rg|ag|ack|git\s+(?:\S+\s+)*grep)\b", (1,)),
    (r"^(?:diff|cmp|colordiff|zdiff|sdiff|wdiff|comm|dyff)\b", (1,)),
    (r"^git\s+(?:\S+\s+)*(?:diff|diff-index|diff-tree|diff-files)\b", (1,)),
    (r"^git\s+(?:\S+\s+)*(?:merge-base\s+--is-ancestor|rev-parse|show-ref|check-ignore|config|symbolic-ref)\b", (1,)),
    (r"^(?:test|\[\[?)(?:\s|$)", (1,)),
    (r"^(?:pgrep|pidof|pkill|which|type|hash|command|expr|let|false|lsof|fuser|mountpoint|\(\()(?:\s|$)", (1,)),
    (r"^getent\b", (2,)),
    (r"^systemctl\s+(?:\S+\s+)*(?:is-active|is-enabled|is-failed|status)\b", (1, 3, 4)),
    (r"^(?:terraform|tofu)\s+plan\b.*-detailed-exitcode", (2,)),
    (r"^[jy]q\s(?:.*\s)?(?:-e|--exit-status)\b", (1, 4)),
    (r"^(?:npm|yarn|pnpm)\s+outdated\b|^tmux\s+has-session\b", (1,)),
)  # fmt: skip
"""Exit codes that answer a question ("no match", "they differ") and are no failures."""

CHECK_ROLES: Mapping[str, Role] = {
    "test": "test",
    "lint": "lint",
    "types": "types",
    "format": "format",
    "build": "build",
}


def role(evidence: "Evidence") -> Role:
    """Say what the command is for; the kind of our own check, where it was one, says it better."""
    if evidence.check in CHECK_ROLES:
        return CHECK_ROLES[evidence.check or ""]
    for part in reversed((evidence.tool, *programs(evidence.command))):
        if found := role_of(part):
            return found
    return ""


def answers(evidence: "Evidence") -> bool:
    """Whether the exit code answers a question that the last command asks."""
    parts = programs(evidence.command)
    last = next((part for part in reversed(parts) if part not in {"true", ":"}), evidence.tool)
    return any(evidence.exit_code in codes and re.search(pattern, last) for pattern, codes in ANSWERS)


def role_of(part: str) -> Role:
    """Say what a simple command is for."""
    if not part or part.split(maxsplit=1)[0] in IDLE:
        return ""
    for found, pattern in SUBCOMMANDS:
        if re.search(pattern, part):
            return found
    name = re.sub(r"\.(?:exe|cmd|bat|phar|sh)$", "", part.split(maxsplit=1)[0])
    bare = re.sub(r"-?[\d.]+$", "", name)
    for found, names in PROGRAMS.items():
        if not {name, bare}.isdisjoint(names.split()):
            return found
    return "lint" if "lint" in name else ""
