"""`doctor` says where the checks and the CI have drifted apart."""

from pathlib import Path
from typing import TYPE_CHECKING

from unstuck.toolchain.ci_workflows import ci_commands

if TYPE_CHECKING:
    from tests.project import Project

WORKFLOW = """name: CI
on: [push]
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - name: Install
        run: pip install -e .[dev]
      - run: ruff check .   # the linter
      - name: Types
        run: "uv run mypy --strict src"
      - name: Tests
        run: |
          # everything
          pytest -q \\
            --maxfail=1
          echo done
      - name: Web
        working-directory: web
        run: >
          npx vitest
          run
      - run: sudo apt-get install -y jq
      - run: pytest --token ${{ secrets.TOKEN }}
"""
GITLAB = """stages: [test]
lint:
  script:
    - pip install flake8
    - flake8 src
    - tox -e py311-lint
    - |
      black --check .
deploy:
  script: ./deploy.sh
"""
SETTINGS = '[checks]\ntest = "python -m pytest -q --maxfail=1 && (cd web && npx vitest run)"\ntypes = "mypy src"\nbuild = "python -m build"\n'


def test_the_commands_of_workflows_are_read_by_what_they_are_for(project: "Project") -> None:
    project.file(".github/workflows/ci.yml", WORKFLOW, commit=False)
    project.file(".github/workflows/release.yml", "jobs:\n  x:\n    steps:\n      - run: npm run build\n", commit=False)
    project.file(".gitlab-ci.yml", GITLAB, commit=False)
    assert [(one.kind, one.command, one.place.rpartition("/")[2]) for one in ci_commands(project.root)] == [
        ("lint", "ruff check .", "ci.yml:10"),
        ("types", "uv run mypy --strict src", "ci.yml:12"),
        ("test", "pytest -q --maxfail=1", "ci.yml:16"),
        ("test", "(cd web && npx vitest run)", "ci.yml:22"),
        ("lint", "flake8 src", ".gitlab-ci.yml:5"),
        ("lint", "tox -e py311-lint", ".gitlab-ci.yml:6"),
        ("format", "black --check .", ".gitlab-ci.yml:8"),
    ]


def test_init_proposes_nothing_from_the_ci(project: "Project") -> None:
    project.file(".github/workflows/ci.yml", WORKFLOW)
    project.file("pytest.ini", "")
    project.git("rm", "--quiet", "unstuck.toml")
    result = project.ask("init", "--no-run")
    assert result.code == 0, result
    assert 'test = "python3 -m pytest"' in result.out.splitlines()
    assert "maxfail" not in result.out
    assert "ci.yml" not in result.err


def test_doctor_says_where_checks_and_ci_have_drifted_apart(project: "Project") -> None:
    project.file(".github/workflows/ci.yml", WORKFLOW)
    project.settings(SETTINGS)
    findings = [one["says"] for one in project.ask("doctor", "--json").json["findings"] if one["about"] == "ci"]
    assert findings == [
        "CI runs `ruff check .` (.github/workflows/ci.yml:10), and no check does.",
        "CI runs `uv run mypy --strict src` (.github/workflows/ci.yml:12); the check types is `mypy src`.",
        "The check build (`python -m build`) is not run by CI.",
    ]
    project.settings('[checks]\ntest = "make test"\nlint = "make lint"\ntypes = "make types"\nbuild = "make build"\n')
    told = project.ask("doctor", "--json").json["findings"]
    assert [one["says"] for one in told if one["about"] == "ci"] == [], "what make runs is not seen from outside"


MOVING = """jobs:
  test:
    steps:
      - run: |
          cd docs
          npx eslint .
          mypy . || true
      - working-directory: ${{ matrix.part }}
        run: pytest
"""
OTHER_LISTS = """lint:
  script:
  - cd api
  - flake8 src
  needs:
  - pytest
"""


def test_a_command_is_read_with_the_folder_it_runs_in_and_left_out_where_it_decides_nothing(tmp_path: Path) -> None:
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / ".github" / "workflows" / "ci.yml").write_text(MOVING)
    (tmp_path / ".gitlab-ci.yml").write_text(OTHER_LISTS)
    assert [one.command for one in ci_commands(tmp_path)] == ["(cd docs && npx eslint .)", "(cd api && flake8 src)"]


BUILDS = "jobs:\n  x:\n    steps:\n" + "".join(
    f"      - run: {line}\n"
    for line in (
        "make one",
        "make two",
        "make docs",
        "make package",
        "make requirements",
        "make coverage",
        "mkdocs build",
    )
)


def test_builds_of_documents_and_packages_are_no_checks(tmp_path: Path) -> None:
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / ".github" / "workflows" / "ci.yml").write_text(BUILDS)
    assert [one.command for one in ci_commands(tmp_path)] == ["make one", "make two"]
