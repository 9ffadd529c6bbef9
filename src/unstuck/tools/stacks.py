"""Which files show which tools, as tables: the checks that fit a project in one folder."""

import re
from collections.abc import Iterator
from pathlib import Path

from unstuck.plans import Check, CheckKind

Row = tuple[str, str, str, tuple[tuple[CheckKind, str], ...]]

BY_FILE: tuple[Row, ...] = (
    # (language, file or pattern, a text that it must hold, checks); the first row of a kind counts
    ("go", "go.mod", "", (("test", "go test ./..."),)),
    ("go", ".golangci.y*ml", "", (("lint", "golangci-lint run"),)),
    ("go", "go.mod", "", (("lint", "go vet ./..."),)),
    ("rust", "Cargo.toml", "", (("test", "cargo test"),)),
    ("rust", "rustfmt.toml", "", (("format", "cargo fmt --check"),)),
    ("rust", "clippy.toml", "", (("lint", "cargo clippy --all-targets -- -D warnings"),)),
    ("java", "mvnw", "", (("test", "./mvnw -B -q test"),)),
    ("java", "pom.xml", "", (("test", "mvn -B -q test"),)),
    ("java", "gradlew", "", (("test", "./gradlew test"),)),
    ("java", "build.gradle*", "", (("test", "gradle test"),)),
    ("ruby", "spec/spec_helper.rb", "", (("test", "bundle exec rspec"),)),
    ("ruby", ".rspec", "", (("test", "bundle exec rspec"),)),
    ("ruby", "Rakefile", "TestTask", (("test", "bundle exec rake test"),)),
    ("ruby", ".rubocop.yml", "", (("lint", "bundle exec rubocop"),)),
    ("php", "phpunit.xml*", "", (("test", "vendor/bin/phpunit"),)),
    ("php", "composer.json", "pestphp/pest", (("test", "vendor/bin/pest"),)),
    ("php", "phpstan.neon*", "", (("types", "vendor/bin/phpstan analyse"),)),
    ("php", "phpcs.xml*", "", (("lint", "vendor/bin/phpcs"),)),
    ("dotnet", "*.sln", "", (("test", "dotnet test"),)),
    ("dotnet", "*.slnx", "", (("test", "dotnet test"),)),
    ("dotnet", "*.csproj", "", (("test", "dotnet test"),)),
)

FALLBACKS: tuple[Row, ...] = (
    ("tox", "tox.ini", "[tox]", (("test", "tox"),)),
    ("tox", "tox.ini", "[testenv", (("test", "tox"),)),
    ("nox", "noxfile.py", "", (("test", "nox"),)),
    ("pre-commit", ".pre-commit-config.yaml", "", (("lint", "pre-commit run --all-files"),)),
)
"""Tools that run other tools: used for what nothing else was found for."""

TARGETS: tuple[tuple[CheckKind, str], ...] = (
    ("test", "test"), ("test", "check"), ("lint", "lint"), ("types", "typecheck"), ("format", "format-check"),
)  # fmt: skip
"""Targets of a Makefile or recipes of a justfile; the first of a kind counts."""


def by_file(root: Path, rows: tuple[Row, ...] = BY_FILE) -> Iterator[tuple[str, Check]]:
    """Yield the checks of all rows that fit, the first of each kind and language."""
    seen: set[tuple[str, CheckKind]] = set()
    for language, name, text, checks in rows:
        if not any(path.is_file() and (not text or text in read(path)) for path in sorted(root.glob(name))):
            continue
        for kind, command in checks:
            if (language, kind) not in seen:
                seen.add((language, kind))
                yield language, Check(kind=kind, command=command)


def by_target(root: Path) -> Iterator[tuple[str, Check]]:
    """Yield the checks that a Makefile or a justfile names."""
    for program, names in (
        ("make", ("Makefile", "makefile", "GNUmakefile")),
        ("just", ("justfile", "Justfile", ".justfile")),
    ):
        text = next((read(root / name) for name in names if (root / name).is_file()), "")
        for kind, target in TARGETS:
            if re.search(rf"^@?{target}\b[^:=\n]*::?(?!=)", text, re.MULTILINE):
                yield program, Check(kind=kind, command=f"{program} {target}")


def read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
