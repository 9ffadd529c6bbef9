"""`unstuck remedy`, `unstuck experience` and `unstuck.remedies`, as people and programs call them."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sampling import some

import unstuck
from unstuck.model.errors import BadUsage

if TYPE_CHECKING:
    from tests.project import Project

GIT = ("--exit-code", "127", "--command", "git clone https://github.com/user/repo")
NO_GIT = "bash: git: command not found\n"


def ask(cwd: Path, text: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "unstuck", *arguments], cwd=cwd, input=text, capture_output=True, text=True, check=False,
        env=os.environ | {"HOME": str(cwd), "XDG_STATE_HOME": str(cwd / "state")} | env, timeout=60,
    )  # fmt: skip


def remedy(cwd: Path, text: str, *arguments: str, **env: str) -> Any:
    done = ask(cwd, text, "remedy", "--json", *arguments, **env)
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    for arguments in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    return root


# --- asking ---------------------------------------------------------------------------------------------------------


def test_the_answer_has_the_shape_of_the_contract(tmp_path: Path) -> None:
    answer = remedy(tmp_path, NO_GIT, *GIT, "--tools", "run_bash,read_dir")
    assert answer["schema"] == 1
    assert (answer["kind"], answer["category"]) == ("command_not_found", "command_not_found")
    first = answer["plans"][0]
    assert first.keys() >= {
        "priority",
        "strategy",
        "confidence",
        "estimatedIterations",
        "risk",
        "requires",
        "steps",
        "fallbackChain",
    }
    assert first["steps"][0].keys() >= {"action", "tool", "args", "expectedOutcome"}
    assert answer["plans"][-1]["steps"] == [
        {
            "action": "Please install git, or say what to use instead.",
            "tool": None,
            "args": {},
            "expectedOutcome": "An answer",
            "risk": "safe",
        }
    ]


def test_a_person_is_told_in_words(tmp_path: Path) -> None:
    result = ask(tmp_path, NO_GIT, "remedy", *GIT)
    assert result.returncode == 0
    assert "1. alternative_command (90%, safe)" in result.stdout
    assert "ask_user" in result.stdout
    assert "timeout_ms: " in result.stdout, "one of several arguments is called by its name"
    there = ask(
        tmp_path, "bash: python3: command not found", "remedy", "--exit-code", "127", "--command", "python3 x.py"
    )
    assert "Use python3," not in there.stdout, "what is missing is not the way out of its own absence"
    only_asking = ask(tmp_path, NO_GIT, "remedy", *GIT, "--tools", "read_dir").stdout
    assert "nothing but to ask a person" in only_asking
    assert "--run" not in only_asking, "there is nothing to run"


def test_what_did_not_fail_needs_no_remedy(tmp_path: Path) -> None:
    assert remedy(tmp_path, "fine\n", "--exit-code", "0")["plans"] == []


def test_many_failures_are_answered_line_by_line_and_a_bad_one_stops_nothing(tmp_path: Path) -> None:
    lines = [
        {
            "id": 1,
            "stderr": "bash: git: command not found",
            "exit_code": 127,
            "command": "git clone https://github.com/a/b",
        },
        {"id": 2, "stdout": "Unknown tool: repo_browser", "tool": "repo_browser", "tools": ["read_dir"]},
        {"id": 3, "stdout": "x", "tool": "a", "args": 5},
        {"id": 4, "stdout": "ok", "exit_code": 0},
    ]
    done = ask(tmp_path, "\n".join(map(json.dumps, lines)) + "\n{broken\n", "remedy", "--jsonl")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2, 3, 4, None]
    assert answers[0]["plans"][0]["strategy"] == "alternative_command"
    assert answers[1]["plans"][0]["steps"][0]["tool"] == "read_dir"
    assert "args" in answers[2]["error"]
    assert answers[3]["plans"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("--tools", "run_bash,$(touch pwned)"),
        ("--tool", "a tool\n; touch pwned"),
        ("--schema", '{"type": "nonsense"}', "--tool", "x"),
        ("--schema", "[1, 2]", "--tool", "x"),
        ("--schema", '"text"', "--tool", "x"),
        ("--schema", '{"properties": {"a": 5}}', "--tool", "x"),
        ("--schema", '{"colour": "red"}', "--tool", "x"),
        ("--schema", "{broken", "--tool", "x"),
        ("--schema", "/nowhere/schema.json", "--tool", "x"),
        ("--arg", "nothing"),
        ("--allow", "everything"),
        ("--jsonl", "--run"),
        ("/nowhere/output.txt",),
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
def test_bad_input_is_refused_in_words_and_nothing_is_run(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = ask(
        tmp_path,
        "Missing required parameter: file\n",
        "remedy",
        *arguments,
        *(() if "--jsonl" in arguments else ("--run",)),
    )
    assert done.returncode == 64, done.stderr
    assert len(done.stderr.splitlines()) <= 6
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


HOSTILE = (
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned;",
    "x\ntouch pwned\n",
    "--exec=touch pwned",
    "'; touch pwned; '",
    "| touch pwned",
)


@pytest.mark.parametrize("evil", some(HOSTILE, every=3))
def test_hostile_strings_stay_data_even_when_remedies_are_run(tmp_path: Path, evil: str) -> None:
    (tmp_path / "config.yaml").write_text("x")
    text = f"cat: {evil}: No such file or directory\n"
    for command in (f"cat {json.dumps(evil)[1:-1]}", "cat config.yml", ""):
        done = ask(tmp_path, text, "remedy", "--run", "--exit-code", "1", "--command", command, "--tool", "run_bash")
        assert done.returncode in (0, 3, 64), done.stderr
    done = ask(
        tmp_path,
        f"curl: (6) Could not resolve host: {evil}\n",
        "remedy",
        "--json",
        "--exit-code",
        "6",
        "--command",
        f"curl http://{evil}/",
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "pwned").exists()


# --- running --------------------------------------------------------------------------------------------------------


def test_the_first_way_that_works_ends_the_walk(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("right")
    answer = remedy(
        tmp_path,
        "cat: Config.YAML: No such file or directory\n",
        "--exit-code",
        "1",
        "--command",
        "cat Config.YAML",
        "--run",
    )
    assert answer["recovered"] == "verify_path"
    assert [one["result"] for one in answer["tried"]] == ["worked"]


def test_what_a_recovered_call_left_is_handed_over_without_secrets(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    (tmp_path / "config.yaml").write_text(f"right\n{token}\n")
    call = ("--exit-code", "1", "--command", "tee copy.txt < Config.YAML", "--run", "--allow", "caution")
    text = "bash: line 1: Config.YAML: No such file or directory\n"
    result = remedy(tmp_path, text, *call)["result"]
    assert result["exitCode"] == 0
    assert result["calls"] == [{"tool": "run_bash", "args": {"script": "tee copy.txt < config.yaml"}}]
    assert result["output"].splitlines()[0] == "right"
    assert "copy.txt" in result["files"]
    told = ask(tmp_path, text, "remedy", *call).stdout
    assert token not in json.dumps(result) + told
    words = json.dumps(["bash", "-lc", f"grep -c {token} Config.YAML"])
    shell = '[{"name": "container.exec", "inputSchema": {"properties": {"cmd": {"type": "array"}}}}]'
    listed = ("--exit-code", "2", "--tool", "container.exec", "--arg", f"cmd={words}", "--tools", shell, "--run")
    [made] = remedy(tmp_path, "grep: Config.YAML: No such file or directory\n", *listed)["result"]["calls"]
    assert made["args"]["cmd"][-1] == "grep -c [redacted] config.yaml"
    for line in ("Recovered by verify_path.", "Call: tee copy.txt < config.yaml", "Exit code: 0", "  right"):
        assert line in told


def test_a_program_that_still_fails_is_not_recovered_by_looking_around(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "app.json").write_text("{}")
    text = "FileNotFoundError: [Errno 2] No such file or directory: 'app.json'\n"
    call = ("--exit-code", "1", "--command", "python3 app.py", "--run", "--allow", "caution")
    answer = remedy(tmp_path, text, *call)
    assert answer["recovered"] is None
    assert answer["result"] is None
    assert not (tmp_path / "app.json").exists()


def test_the_chain_of_causes_goes_as_far_as_the_evidence(repository: Path) -> None:
    (repository / "data.csv").write_text("1")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for arguments in (
        ("add", "."),
        ("commit", "-qm", "Add data"),
        ("rm", "-q", "data.csv"),
        ("commit", "-qm", "Tidy up"),
    ):
        subprocess.run([*git, *arguments], cwd=repository, check=True)
    call = ("--exit-code", "1", "--command", "cat data.csv", "--why")
    text = "cat: data.csv: No such file or directory\n"
    result = ask(repository, text, "remedy", *call).stdout
    for part in (
        "cat data.csv failed with exit code 1",
        "the file data.csv is missing",
        "deleted in",
        "Tidy up",
        "the evidence ends",
    ):
        assert part in result
    answer = remedy(repository, "./run.py:1: error: bad\n", "--exit-code", "1", "--command", "./x", "--why")
    assert [one["evidence"] for one in answer["whys"]] == ["the call", "its output"], "no such file, no such place"
    (repository / "run.py").write_text("bad")
    answer = remedy(repository, "run.py:1: error: bad\n", "--exit-code", "1", "--command", "mypy .", "--why")
    assert answer["whys"][-1] == {"cause": "since it was changed without a commit", "evidence": "git status"}
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        text = f"OSError: [Errno 98] Address already in use: ('127.0.0.1', {port})\n"
        answer = remedy(repository, text, "--exit-code", "1", "--command", f"./serve {port}", "--why")
        assert f"(process {os.getpid()}) listens there" in answer["whys"][-1]["cause"]
    answer = remedy(repository, "it went wrong\n", "--exit-code", "1", "--command", "./x", "--why")
    assert len(answer["whys"]) <= 2, "nothing is made up"
    assert answer["ends"]


def test_tools_are_called_as_their_schemas_say(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("right")
    tools = json.dumps([
        {"name": "sh", "input_schema": {"type": "object", "properties": {"argv": {"type": "array"}}, "required": ["argv"]}},
        {"type": "function", "function": {"name": "list_dir", "parameters": {"type": "object", "properties": {"directory": {"type": "string"}}}}},
    ])  # fmt: skip
    text, call = "cat: Config.YAML: No such file or directory\n", ("--exit-code", "1", "--command", "cat Config.YAML")
    steps = remedy(tmp_path, text, *call, "--tools", tools)["plans"][0]["steps"]
    assert [(step["tool"], step["args"]) for step in steps] == [
        ("list_dir", {"directory": "."}),
        ("sh", {"argv": ["bash", "-lc", "cat config.yaml"]}),
    ]


def test_nothing_that_needs_care_is_run_unasked(tmp_path: Path) -> None:
    text, call = "cat: app.cfg: No such file or directory\n", ("--exit-code", "1", "--command", "cat app.cfg")
    (tmp_path / "app.cfg.example").write_text("a = 1")
    done = ask(tmp_path, text, "remedy", "--run", *call)
    assert done.returncode == 3
    assert "caution" in done.stdout
    assert "Please give the correct path of app.cfg." in done.stdout
    assert not (tmp_path / "app.cfg").exists()
    assert ask(tmp_path, text, "remedy", "--run", "--allow", "caution", *call).returncode == 0
    assert (tmp_path / "app.cfg").read_text() == "a = 1"


def test_a_way_that_fails_leaves_the_files_as_they_were(tmp_path: Path) -> None:
    script = tmp_path / "build.sh"
    script.write_text("if true; then\n  exit 7\n")
    done = ask(tmp_path, "build.sh: line 3: syntax error: unexpected end of file\n", "remedy", "--run", "--allow", "caution",
               "--exit-code", "2", "--command", "bash build.sh")  # fmt: skip
    assert done.returncode == 3, done.stdout
    assert script.read_text() == "if true; then\n  exit 7\n"


def test_a_lock_in_use_and_anything_outside_the_workspace_are_left_alone(repository: Path) -> None:
    lock = repository / ".git" / "index.lock"
    lock.touch()
    os.utime(lock, (time.time() - 600,) * 2)
    outside = repository.parent / "index.lock"
    outside.touch()
    with lock.open("a"):
        for path in (lock, outside):
            text = f"fatal: Unable to create '{path}': File exists.\n"
            answer = remedy(repository, text, "--exit-code", "128", "--command", "true")
            assert any(one["strategy"] == "remove_stale_lock" for one in answer["skipped"])
    assert lock.exists()
    assert outside.exists()


def test_the_configuration_decides_what_may_run(repository: Path) -> None:
    (repository / "unstuck.toml").write_text('[remedies]\nallow = "caution"\nnever = ["verify_path"]\n')
    (repository / "a.cfg.sample").write_text("x")
    text = "cat: a.cfg: No such file or directory\n"
    answer = remedy(repository, text, "--exit-code", "1", "--command", "cat a.cfg", "--run")
    assert answer["skipped"] == [{"strategy": "verify_path", "because": "the configuration says never"}]
    assert answer["recovered"] == "create_missing_file"
    (repository / "unstuck.toml").write_text("[remedies]\nnever_sudoo = true\n")
    done = ask(repository, text, "remedy", "--exit-code", "1")
    assert done.returncode == 64
    assert "never_sudo" in done.stderr


# --- experience -----------------------------------------------------------------------------------------------------


def test_what_was_tried_is_kept_in_the_repository_shown_exported_and_forgotten(repository: Path) -> None:
    (repository / "config.yaml").write_text("right")
    for _ in range(2):
        remedy(
            repository,
            "cat: Config.yaml: No such file or directory\n",
            "--exit-code",
            "1",
            "--command",
            "cat Config.yaml",
            "--run",
        )
    table = json.loads(ask(repository, "", "experience", "--json").stdout)
    assert [(row["chain"], row["strategy"], row["tries"], row["successes"]) for row in table["rows"]] == [
        ("file_not_found", "verify_path", 2, 2)
    ]
    assert (
        subprocess.run(
            ["git", "status", "--porcelain"], cwd=repository, capture_output=True, text=True, check=True
        ).stdout
        == "?? config.yaml\n"
    )
    assert "verify_path" in ask(repository, "", "experience").stdout
    exported = ask(repository, "", "experience", "--export", "-").stdout
    assert "Forgotten" in ask(repository, "", "experience", "--reset").stdout
    assert json.loads(ask(repository, "", "experience", "--json").stdout)["rows"] == []
    assert ask(repository, exported, "experience", "--import", "-").returncode == 0
    assert json.loads(ask(repository, "", "experience", "--json").stdout)["rows"] == table["rows"]


@pytest.mark.parametrize(
    "text",
    [
        "{broken",
        "[]",
        '{"schema": 2}',
        '{"schema": 1, "rows": [{"chain": "x"}]}',
        '{"schema": 1, "rows": [{"chain": "x", "strategy": "y", "context": "", "tried": "many", "worked": 1, "tries": 1, "successes": 1, "steps": 1, "seconds": 1}]}',
    ],
)
def test_an_import_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    done = ask(tmp_path, text, "experience", "--import", "-")
    assert done.returncode == 64
    assert "--export" in done.stderr


def test_a_step_that_somebody_else_ran_teaches_as_well(repository: Path) -> None:
    done = ask(repository, "", "experience", "--report", "reduce_scope", "--category", "timeout", "--worked", "--tool", "ruff", "--seconds", "2.5", "--cost", "0.02")  # fmt: skip
    assert done.returncode == 0, done.stderr
    unstuck.report("timeout", "reduce_scope", worked=False, tool="ruff", cwd=repository)
    (row,) = json.loads(ask(repository, "", "experience", "--json").stdout)["rows"]
    assert (row["tool"], row["tries"], row["successes"], row["seconds"], row["cost"]) == ("ruff", 2, 1, 2.5, 0.02)
    with pytest.raises(BadUsage, match="no way out"):
        unstuck.report("timeout", "wishful_thinking", worked=True, cwd=repository)
    assert ask(repository, "", "experience", "--report", "reduce_scope", "--category", "timeout").returncode == 64


def test_a_file_that_does_not_parse_is_set_aside_and_the_remedy_still_runs(repository: Path) -> None:
    (repository / ".git" / "unstuck").mkdir()
    (repository / ".git" / "unstuck" / "remedies.json").write_text("{half")
    (repository / "config.yaml").write_text("right")
    answer = remedy(
        repository,
        "cat: Config.yaml: No such file or directory\n",
        "--exit-code",
        "1",
        "--command",
        "cat Config.yaml",
        "--run",
    )
    assert answer["recovered"] == "verify_path"
    assert [path.read_text() for path in (repository / ".git" / "unstuck").glob("remedies.json.broken-*")] == ["{half"]


def test_two_at_once_both_count(repository: Path) -> None:
    (repository / "config.yaml").write_text("right")
    argv = [
        sys.executable,
        "-P",
        "-m",
        "unstuck",
        "remedy",
        "--run",
        "--exit-code",
        "1",
        "--command",
        "cat Config.yaml",
        "error.txt",
    ]
    (repository / "error.txt").write_text("cat: Config.yaml: No such file or directory\n")
    running = [subprocess.Popen(argv, cwd=repository, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert json.loads(ask(repository, "", "experience", "--json").stdout)["rows"][0]["tries"] == 3


def test_a_worktree_of_a_run_shares_the_repositorys_experience(repository: Path) -> None:
    worktree = repository.parent / "w0"
    subprocess.run(["git", "worktree", "add", "-q", str(worktree)], cwd=repository, check=True)
    (worktree / "config.yaml").write_text("right")
    remedy(
        worktree,
        "cat: Config.yaml: No such file or directory\n",
        "--exit-code",
        "1",
        "--command",
        "cat Config.yaml",
        "--run",
    )
    assert (repository / ".git" / "unstuck" / "remedies.json").exists()
    assert not (worktree / ".unstuck").exists()


def test_several_failures_with_one_cause_are_told_as_one(repository: Path) -> None:
    for command in ("frob", "grob", "drob"):
        remedy(repository, f"bash: {command}: command not found\n", "--exit-code", "127", "--command", command, "--run")
    assert remedy(repository, NO_GIT, *GIT)["pattern"]["name"] == "bare_machine"


def test_a_run_tells_the_next_attempt_the_ways_out(project: "Project") -> None:
    project.plan(("1.1", "Copy it", "cp a.txt out/b.txt && false"))
    project.file("a.txt", "a")
    project.script(_1_1=[[{"write": "c.txt", "text": "x"}]])
    assert project.run("--max-attempts", "2").code == 3
    briefs = {path.name: path.read_text() for path in (project.home / "briefs").iterdir()}
    assert "Ways out" not in briefs["1.1-1-1.md"]
    assert "create_missing_file (caution): Make the folder that it needs: mkdir -p -- out" in briefs["1.1-2-1.md"]


# --- the library ----------------------------------------------------------------------------------------------------


def test_the_library_gives_the_same_plan() -> None:
    failure = unstuck.diagnose(NO_GIT, exit_code=127, tool="run_bash", command="git clone https://github.com/user/repo")
    plan = unstuck.remedy(failure, tools={"run_bash", "read_dir"})
    assert plan["plans"][0]["strategy"] == plan.plans[0].strategy == "alternative_command"
    assert json.loads(json.dumps(plan))["kind"] == plan.kind == "command_not_found"
    assert unstuck.remedy(None)["plans"] == []


def test_the_library_takes_tools_with_their_schemas() -> None:
    failure = unstuck.diagnose("Invalid arguments: count should be number, got string", tool="count_lines")
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    plan = unstuck.remedy(failure, tools={"count_lines": schema}, args={"count": "5"})
    assert plan["plans"][0]["strategy"] == "fix_parameter_types"
    assert plan["plans"][0]["steps"][0]["args"] == {"count": 5}
    with pytest.raises(BadUsage, match="no JSON schema"):
        unstuck.remedy(failure, tools={"count_lines": {"type": "colour"}}, args={})


def test_a_plan_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from unstuck.cli import run_cli; run_cli(['remedy', '--tool', 'repo_browser', '--json']);"
        "print([name for name in ('pydantic', 'rich', 'subprocess', 'sqlite3', 'tomllib', 'socket', 'unstuck.git', 'unstuck.journal', 'unstuck.engine', 'unstuck.process') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        input="Unknown tool: repo_browser",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.strip() == "[]"
