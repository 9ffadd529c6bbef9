import json
import subprocess
from pathlib import Path

import pytest

from unstuck.agents.manifests import agent_catalog, agents_on_path
from unstuck.toolchain.detection import detect

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
        {
            "lint": "python3 -m ruff check --no-fix .",
            "format": "python3 -m ruff format --check .",
            "types": "python3 -m mypy .",
        },
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
        {"test": ".venv/bin/python -m unittest discover"},
    ),
    "uv": (
        {"pyproject.toml": "[dependency-groups]\ntest = ['pytest']\n", "uv.lock": ""},
        ("python",),
        {"test": "uv run --no-sync python -m pytest"},
    ),
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
        {"Gemfile": "gem 'rspec'\ngem 'rubocop'\n", ".rspec": "", ".rubocop.yml": ""},
        ("ruby",),
        {"test": "bundle exec rspec", "lint": "bundle exec rubocop"},
    ),
    "php": (
        {"composer.json": '{"phpunit/phpunit": 1, "phpstan/phpstan": 1}', "phpunit.xml.dist": "", "phpstan.neon": ""},
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
        {"lint": "python3 -m flake8 --extend-exclude .venv", "format": "python3 -m black --check ."},
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
    "a monorepo with a part that has only a test": (
        {"packages/a/package.json": '{"scripts": {"test": "x"}}', "packages/b/test_m.py": "import unittest\n"},
        ("node", "python"),
        {"test": "(cd packages/a && npm run test) && (cd packages/b && python3 -m unittest discover)"},
    ),
    "tests inside of the package": (
        {"setup.py": "", "pkg/__init__.py": "", "pkg/tests/test_a.py": "import unittest\n"},
        ("python",),
        {"test": ".venv/bin/python -m unittest discover"},
    ),
    "tests as plain functions": (
        {
            "setup.py": "",
            "requirements-dev.txt": "pytest-cov\n",
            "src/pkg/tests/test_a.py": "def test_a():\n    assert True\n",
        },
        ("python",),
        {"test": ".venv/bin/python -m pytest"},
    ),
    "tests for a runner that nothing names": (
        {"setup.py": "", "test_a.py": "import pytest\n"},
        ("python",),
        {},
    ),
    "what is not the project's own": (
        {"setup.cfg": "", "node_modules/x/test_a.py": "import unittest", ".venv/lib/test_a.py": "import unittest"},
        ("python",),
        {},
    ),
    "mocha without a script": (
        {"package.json": '{"devDependencies": {"mocha": "1"}}'},
        ("node",),
        {"test": 'export PATH="$PWD/node_modules/.bin:$PATH" && mocha'},
    ),
    "ava behind npm init's own test": (
        {"package.json": f'{NO_TESTS[:-1]}, "devDependencies": {{"ava": "1"}}}}'},
        ("node",),
        {"test": 'export PATH="$PWD/node_modules/.bin:$PATH" && ava'},
    ),
    "a script before the runner that it calls": (
        {"package.json": '{"scripts": {"test": "tap"}, "devDependencies": {"tap": "1"}}'},
        ("node",),
        {"test": "npm run test"},
    ),
    "node:test without a script": (
        {"package.json": "{}", "test/a.mjs": "import test from 'node:test';\n"},
        ("node",),
        {"test": "node --test"},
    ),
    "only a test": (
        {"tests/test_m.py": "import unittest\n"},
        ("python",),
        {"test": "python3 -m unittest discover"},
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
    stack = detect(tmp_path, has=bool)
    assert stack.languages == languages
    assert {check.kind: check.command for check in stack.checks} == checks


def test_a_part_that_nothing_at_the_top_checks_is_named(tmp_path: Path) -> None:
    _write(tmp_path, {"pytest.ini": "", "frontend/package.json": '{"scripts": {"test": "x"}}'})
    assert [note.partition(",")[0] for note in detect(tmp_path, has=bool).notes] == [
        "frontend (node) is a project of its own"
    ]


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
    stack = detect(tmp_path, has=bool)
    assert stack.copy == (".env", ".venv", "node_modules")
    assert stack.setup == ()


def test_what_a_set_up_makes_is_not_copied(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    packages = ".venv/lib/python3.11/site-packages"
    _write(
        tmp_path,
        {
            ".gitignore": ".venv\nnode_modules\n",
            "setup.py": "",
            ".venv/pyvenv.cfg": "",
            f"{packages}/x.pth": f"{tmp_path}/src",
            "package.json": "{}",
            "yarn.lock": "",
            "node_modules/a/x": "",
        },
    )
    stack = detect(tmp_path, has=bool)
    assert stack.copy == ()
    assert stack.instead == ("node_modules",), "a venv with an editable install is a trap"
    assert stack.setup == (
        "python3 -m venv .venv && .venv/bin/python -m pip install -q -e .",
        "yarn install --frozen-lockfile",
    )


EXTRAS = "[project]\nname = 'x'\n[project.optional-dependencies]\ntest = ['pytest>=7']\ndocs = ['sphinx']\nfast = ['orjson']\n"
SETUPS: dict[str, tuple[dict[str, str], str]] = {
    "extras by name": ({"pyproject.toml": EXTRAS}, "-q -e '.[test]'"),
    "an extra of extras": (
        {
            "pyproject.toml": "[project]\nname='x'\n[project.optional-dependencies]\ntest=['pytest']\ndev=['x[test]','ruff']\n"
        },
        "-q -e '.[test]'",
    ),
    "only dev": (
        {"pyproject.toml": "[project]\nname='x'\n[project.optional-dependencies]\ndev=['pytest']\n"},
        "-e '.[dev]'",
    ),
    "groups": (
        {
            "pyproject.toml": "[project]\nname='x'\n[dependency-groups]\ntests=['pytest']\nlint=[{include-group='tests'}]\n"
        },
        "-q -U pip && .venv/bin/python -m pip install -q --group tests --group lint -e .",
    ),
    "setup.cfg": ({"setup.py": "", "setup.cfg": "[options.extras_require]\ntesting =\n  pytest\n"}, "-e '.[testing]'"),
    "setup.py": (
        {"setup.py": "from setuptools import setup\nsetup(extras_require={'tests': ['pytest']})"},
        "-e '.[tests]'",
    ),
    "requirement files": (
        {"requirements.txt": "flask\n", "requirements-dev.txt": "-r requirements.txt\npytest\n"},
        "-q -r requirements.txt -r requirements-dev.txt",
    ),
    "a folder of them": ({"setup.py": "", "requirements/test.txt": "pytest"}, "-q -r requirements/test.txt -e ."),
    "uv": ({"pyproject.toml": EXTRAS, "uv.lock": ""}, "uv sync --frozen --extra test"),
    "poetry": (
        {"pyproject.toml": "[tool.poetry.group.test.dependencies]\npytest='*'\n", "poetry.lock": ""},
        "poetry install --no-interaction --with test",
    ),
    "pdm": ({"pyproject.toml": EXTRAS, "pdm.lock": ""}, "pdm sync -G test"),
    "npm's lock": ({"package.json": "{}", "package-lock.json": ""}, "npm ci --no-audit --no-fund"),
    "no lock": (
        {"package.json": '{"devDependencies": {"tape": "1"}}'},
        "npm install --no-package-lock --no-audit --no-fund",
    ),
    "pnpm": ({"package.json": "{}", "pnpm-lock.yaml": ""}, "pnpm install --frozen-lockfile"),
    "yarn 1": ({"package.json": "{}", "yarn.lock": "# yarn lockfile v1"}, "yarn install --frozen-lockfile"),
    "yarn 4": ({"package.json": "{}", "yarn.lock": "__metadata:\n  version: 8"}, "yarn install --immutable"),
    "bun": ({"package.json": "{}", "bun.lockb": ""}, "bun install --frozen-lockfile"),
    "cargo": ({"Cargo.toml": "", "Cargo.lock": ""}, "cargo fetch --locked"),
    "go": ({"go.mod": ""}, "go mod download"),
    "bundler": ({"Gemfile": ""}, "bundle config set --local path vendor/bundle && bundle install"),
    "maven": ({"pom.xml": "", "mvnw": ""}, "./mvnw -B -q -DskipTests test-compile"),
    "gradle": ({"build.gradle": ""}, "gradle --no-daemon -q testClasses"),
    "composer": ({"composer.json": "{}"}, "composer install --no-interaction --no-progress"),
    "dotnet": ({"App.csproj": ""}, "dotnet restore"),
}


def test_a_fresh_clone_is_set_up_from_what_is_there(tmp_path: Path) -> None:
    wrong = {}
    for number, (name, (files, expected)) in enumerate(SETUPS.items()):
        root = tmp_path / str(number)
        _write(root, files)
        if not any(expected in line for line in detect(root, has=bool).setup):
            wrong[name] = detect(root, has=bool).setup
    assert wrong == {}


def test_where_the_tool_of_a_lock_file_is_missing_another_one_sets_up(tmp_path: Path) -> None:
    _write(tmp_path, {"pyproject.toml": EXTRAS, "uv.lock": "", "package.json": "{}", "pnpm-lock.yaml": ""})
    _write(tmp_path, {"package.json": '{"devDependencies": {"tape": "1"}}'})
    setup = detect(tmp_path, has={"python3", "npm"}.__contains__).setup
    assert setup[0].endswith("pip install -q -e '.[test]'")
    assert setup[1].startswith("npm install")


def test_a_tool_that_no_manifest_names_is_not_proposed(tmp_path: Path) -> None:
    settings = "[tool.ruff]\n[tool.black]\n[tool.mypy]\n[tool.pytest.ini_options]\n"
    _write(tmp_path, {"pyproject.toml": EXTRAS + settings, ".flake8": "", ".pre-commit-config.yaml": ""})
    assert [(one.kind, one.lines) for one in detect(tmp_path, has=bool).proposals] == [
        ("test", (".venv/bin/python -m pytest",))
    ]


def test_a_script_that_repairs_files_is_asked_only_to_look(tmp_path: Path) -> None:
    scripts = {"lint": "eslint --fix src && prettier -w .", "format:check": "biome check --write", "test": "jest -u"}
    _write(tmp_path, {"package.json": json.dumps({"scripts": scripts})})
    lines = {check.kind: check.command.rpartition('$PATH" && ')[2] for check in detect(tmp_path, has=bool).checks}
    assert detect(tmp_path, has=bool).checks[1].command.endswith("&& eslint src && prettier --check .")
    assert lines["format"] == "biome check"
    assert lines["test"] == "jest"


def test_outside_of_git_nothing_is_proposed_for_copying(tmp_path: Path) -> None:
    _write(tmp_path, {".env": ""})
    assert detect(tmp_path, has=bool).copy == ()


def test_agents_are_found_by_their_programs(tmp_path: Path) -> None:
    for name in ("cn", "codex", "not-an-agent"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    (tmp_path / "claude").write_text("not executable")
    assert agents_on_path(str(tmp_path)) == ("codex", "continue")
    assert len(agent_catalog()) == 13


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
