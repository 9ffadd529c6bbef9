import json
import subprocess
from pathlib import Path

import pytest

from unstuck.agents.manifests import catalog
from unstuck.tools.detecting import agents_on_path, detect

NODE = json.dumps(
    {
        "scripts": {
            "test": "vitest",
            "lint": "eslint .",
            "type-check": "tsc",
            "format:check": "prettier -c .",
            "build": "x",
            "dev": "y",
        }
    }
)
NO_TESTS = json.dumps({"scripts": {"test": 'echo "Error: no test specified" && exit 1'}})

STACKS: dict[str, tuple[dict[str, str], tuple[str, ...], dict[str, str]]] = {
    "nothing": ({}, (), {}),
    "pytest in pyproject": (
        {"pyproject.toml": "[tool.pytest.ini_options]\n"},
        ("python",),
        {"test": "python3 -m pytest"},
    ),
    "pytest in tox.ini": ({"tox.ini": "[pytest]\n"}, ("python",), {"test": "python3 -m pytest"}),
    "ruff and mypy": (
        {"pyproject.toml": "[tool.ruff]\n[tool.ruff.format]\n[tool.mypy]\nstrict = true\n"},
        ("python",),
        {"lint": "python3 -m ruff check .", "format": "python3 -m ruff format --check .", "types": "python3 -m mypy ."},
    ),
    "mypy that knows its files": (
        {"pyproject.toml": "[tool.mypy]\nfiles = ['src']\n"},
        ("python",),
        {"types": "python3 -m mypy"},
    ),
    "mypy in setup.cfg": ({"setup.cfg": "[mypy]\n"}, ("python",), {"types": "python3 -m mypy ."}),
    "unittest": (
        {"setup.py": "", "tests/test_a.py": "import unittest"},
        ("python",),
        {"test": "python3 -m unittest discover"},
    ),
    "uv": ({"pyproject.toml": "pytest", "uv.lock": ""}, ("python",), {"test": "uv run python -m pytest"}),
    "a venv": (
        {"pyproject.toml": "pytest", ".venv/pyvenv.cfg": ""},
        ("python",),
        {"test": ".venv/bin/python -m pytest"},
    ),
    "broken pyproject": ({"pyproject.toml": "[tool.mypy\n"}, ("python",), {"types": "python3 -m mypy ."}),
    "npm": (
        {"package.json": NODE},
        ("node",),
        {
            "test": "npm run test",
            "lint": "npm run lint",
            "types": "npm run type-check",
            "format": "npm run format:check",
            "build": "npm run build",
        },
    ),
    "pnpm": (
        {"package.json": '{"scripts": {"test": "x"}}', "pnpm-lock.yaml": ""},
        ("node",),
        {"test": "pnpm run test"},
    ),
    "npm init's own test": ({"package.json": NO_TESTS}, ("node",), {}),
    "broken package.json": ({"package.json": "{"}, (), {}),
    "odd package.json": ({"package.json": "[]"}, (), {}),
    "go": ({"go.mod": "module x"}, ("go",), {"test": "go test ./...", "lint": "go vet ./..."}),
    "rust": ({"Cargo.toml": "", "rustfmt.toml": ""}, ("rust",), {"test": "cargo test", "format": "cargo fmt --check"}),
    "make": (
        {"Makefile": "CC := gcc\ntest := no\ncheck: all\n\ttrue\nlint:\n\ttrue\n"},
        ("make",),
        {"lint": "make lint", "test": "make check"},
    ),
    "make beside go": (
        {"go.mod": "", "Makefile": "test:\n\ttrue\ntypecheck:\n\ttrue\n"},
        ("go", "make"),
        {"test": "go test ./...", "lint": "go vet ./...", "types": "make typecheck"},
    ),
    "golangci": ({"go.mod": "", ".golangci.yml": ""}, ("go",), {"test": "go test ./...", "lint": "golangci-lint run"}),
    "maven": ({"pom.xml": ""}, ("java",), {"test": "mvn -B -q test"}),
    "maven's wrapper": ({"pom.xml": "", "mvnw": ""}, ("java",), {"test": "./mvnw -B -q test"}),
    "gradle": ({"build.gradle.kts": ""}, ("java",), {"test": "gradle test"}),
    "ruby": (
        {"Gemfile": "", ".rspec": "", ".rubocop.yml": ""},
        ("ruby",),
        {"test": "bundle exec rspec", "lint": "bundle exec rubocop"},
    ),
    "php": (
        {"composer.json": "{}", "phpunit.xml.dist": "", "phpstan.neon": ""},
        ("php",),
        {"test": "vendor/bin/phpunit", "types": "vendor/bin/phpstan analyse"},
    ),
    "dotnet": ({"App.sln": "", "App.csproj": ""}, ("dotnet",), {"test": "dotnet test"}),
    "just": ({"justfile": "test *args:\n  x\n"}, ("just",), {"test": "just test"}),
    "nox and pre-commit": (
        {"noxfile.py": "", ".pre-commit-config.yaml": ""},
        ("nox", "pre-commit"),
        {"test": "nox", "lint": "pre-commit run --all-files"},
    ),
    "tox": ({"tox.ini": "[tox]\n"}, ("python", "tox"), {"test": "tox"}),
    "black and flake8": (
        {"pyproject.toml": "[tool.black]\n", ".flake8": ""},
        ("python",),
        {"lint": "python3 -m flake8", "format": "python3 -m black --check ."},
    ),
    "two languages with tests": (
        {"pytest.ini": "", "package.json": '{"scripts": {"test": "x"}}', "yarn.lock": ""},
        ("python", "node"),
        {"test": "python3 -m pytest && yarn run test"},
    ),
    "a monorepo": (
        {"backend/pytest.ini": "", "packages/web app/package.json": '{"scripts": {"test": "x", "lint": "y"}}'},
        ("python", "node"),
        {
            "test": "(cd backend && python3 -m pytest) && (cd 'packages/web app' && npm run test)",
            "lint": "(cd 'packages/web app' && npm run lint)",
        },
    ),
    "python and node": (
        {"pytest.ini": "", "package.json": '{"scripts": {"build": "x"}}'},
        ("python", "node"),
        {"test": "python3 -m pytest", "build": "npm run build"},
    ),
}


@pytest.mark.parametrize(("files", "languages", "checks"), STACKS.values(), ids=STACKS.keys())
def test_the_checks_fit_the_stack(
    tmp_path: Path, files: dict[str, str], languages: tuple[str, ...], checks: dict[str, str]
) -> None:
    _write(tmp_path, files)
    stack = detect(tmp_path)
    assert stack.languages == languages
    assert {check.kind: check.command for check in stack.checks} == checks


def test_what_is_there_and_ignored_is_proposed_for_copying(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    _write(
        tmp_path,
        {
            ".gitignore": ".env*\nnode_modules/\ntarget\n.venv\n",
            ".env": "",
            "node_modules/a/index.js": "",
            "vendor/tracked": "",
            ".venv/pyvenv.cfg": "",
        },
    )
    stack = detect(tmp_path)
    assert stack.copy == (".env", ".venv", "node_modules")
    assert stack.link == stack.setup == ()


def test_a_trap_is_made_anew_instead_of_copied(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    packages = ".venv/lib/python3.11/site-packages"
    _write(
        tmp_path,
        {
            ".gitignore": ".venv\nnode_modules\n",
            "pyproject.toml": "",
            ".venv/pyvenv.cfg": "",
            f"{packages}/x.pth": f"{tmp_path}/src",
            "yarn.lock": "",
            "node_modules/a/x": "",
        },
    )
    (tmp_path / "node_modules" / "own").symlink_to(tmp_path / "packages" / "own")
    stack = detect(tmp_path)
    assert stack.copy == ()
    assert stack.setup == ("python3 -m venv .venv && .venv/bin/pip install -e .", "yarn install --frozen-lockfile")
    assert len(stack.notes) == 2


def test_outside_of_git_nothing_is_proposed_for_copying(tmp_path: Path) -> None:
    _write(tmp_path, {".env": ""})
    assert detect(tmp_path).copy == ()


def test_agents_are_found_by_their_programs(tmp_path: Path) -> None:
    for name in ("cn", "codex", "not-an-agent"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    (tmp_path / "claude").write_text("not executable")
    assert agents_on_path(str(tmp_path)) == ("codex", "continue")
    assert len(catalog()) == 13


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
