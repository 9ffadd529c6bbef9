"""`unstuck remedy` and what is seen around a failure: renames, the places that an output names, servers, and what is left to do."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_remedy import ask, remedy

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b")


def commit(root: Path, message: str) -> None:
    for arguments in (("add", "-A"), ("commit", "-qm", message)):
        subprocess.run([*GIT, *arguments], cwd=root, check=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


# --- renames and places ---------------------------------------------------------------------------------------------

NODE = "Error: Cannot find module './helper'\nRequire stack:\n- {root}/lib/main.js\n    at Object.<anonymous> ({root}/lib/main.js:1:1)\n"


@pytest.mark.parametrize(
    ("old", "news", "main", "command", "said"),
    [
        ("helper.py", ["helpers.py"], "main.py", "python3 main.py", "ModuleNotFoundError: No module named 'helper'\n"),
        ("src/app/helper.py", ["src/app/common.py", "src/app/tools.py"], "src/app/main.py", "python3 -m app.main", "ModuleNotFoundError: No module named 'app.helper'\n"),
        ("helper/__init__.py", ["lib/helper/__init__.py"], "main.py", "python3 main.py", "ModuleNotFoundError: No module named 'helper'\n"),
        ("lib/helper.js", ["lib/helpers.js"], "lib/main.js", "node lib/main.js", NODE),
    ],
    ids=["python", "renamed twice", "package", "node"],
)  # fmt: skip
def test_a_module_of_the_projects_own_that_git_renamed_is_not_asked_to_be_installed(
    repository: Path, old: str, news: list[str], main: str, command: str, said: str
) -> None:
    for name in (old, main):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(f"# {name}\nanswer = 42\n")
    (repository / "requirements.txt").write_text("helper\n")
    commit(repository, "Begin")
    for name in news:
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / old).rename(repository / name)
        commit(repository, f"Call it {name}")
        old = name
    text, call = said.replace("{root}", str(repository)), ("--exit-code", "1", "--command", command)
    whys = remedy(repository, text, *call, "--why")["whys"]
    assert f"renamed to {news[-1]} in" in whys[-1]["cause"]
    assert f"Call it {news[-1]}" in whys[-1]["cause"]
    answer = remedy(repository, text, *call)
    assert [one["strategy"] for one in answer["plans"]] == ["ask_user"], "nothing is installed"
    question = answer["plans"][-1]["steps"][0]["action"]
    assert "install" not in question
    assert f"renamed to {news[-1]} in" in question


def test_a_renamed_module_that_the_call_names_is_called_by_its_new_name(repository: Path) -> None:
    (repository / "helper.py").write_text("print('right')\n")
    commit(repository, "Begin")
    (repository / "helper.py").rename(repository / "tools.py")
    commit(repository, "Rename")
    call = ("--exit-code", "1", "--command", "python3 -m helper", "--run", "--allow", "caution")
    answer = remedy(repository, "python3: No module named helper\n", *call)
    assert answer["recovered"] == "correct_the_name"
    assert answer["result"]["output"] == "right"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('  File "app/bad.py", line 2\n    def f(:\n          ^\nSyntaxError: invalid syntax\n', "app/bad.py:2"),
        ('Traceback (most recent call last):\n  File "app/good.py", line 1, in <module>\n  File "app/bad.py", line 2, in f\nZeroDivisionError: division by zero\n', "app/bad.py:2"),
        ("FAILED app/bad.py::test_one - assert 1 == 2\n1 failed in 0.01s\n", "app/bad.py"),
    ],
    ids=["syntax", "traceback", "pytest"],
)  # fmt: skip
def test_the_place_that_an_output_names_is_looked_up_in_git(repository: Path, text: str, place: str) -> None:
    (repository / "app").mkdir()
    for name in ("good.py", "bad.py"):
        (repository / "app" / name).write_text("x\ny\n")
        commit(repository, f"Write {name}")
    whys = remedy(repository, text, "--exit-code", "1", "--command", "python3 -m pytest", "--why")["whys"]
    assert whys[-2]["cause"] == f"because of {place}"
    assert whys[-1]["cause"].endswith("Write bad.py")


# --- what is left to do ---------------------------------------------------------------------------------------------


def test_what_no_run_did_is_told_to_the_person_who_goes_on(repository: Path) -> None:
    (repository / "conf").mkdir()
    (repository / "conf" / "app.json").write_text("{}")
    text = "FileNotFoundError: [Errno 2] No such file or directory: 'app.json'\n"
    result = ask(repository, text, "remedy", "--run", "--exit-code", "1", "--command", "python3 app.py")
    assert result.returncode == 3
    left = result.stdout.partition("What is left to do by hand:")[2]
    assert "Look at conf/app.json, which is there; the call itself has to name it" in left, "advice"
    (repository / "app.cfg.example").write_text("a = 1")
    text = "cat: app.cfg: No such file or directory\n"
    result = ask(repository, text, "remedy", "--run", "--exit-code", "1", "--command", "cat app.cfg")
    assert "app.cfg.example" in result.stdout.partition("What is left to do by hand:")[2], "what nobody allowed"


# --- what a way does besides the call -------------------------------------------------------------------------------

AS_A_USER = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search")


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="no mode stops the superuser")
def test_a_file_that_was_only_out_of_sight_is_not_told_as_made(repository: Path) -> None:
    (repository / "hidden").mkdir()
    (repository / "hidden" / "old.txt").write_text("right\n")
    (repository / "hidden").chmod(0)
    argv = [
        sys.executable,
        "-P",
        "-m",
        "unstuck",
        "remedy",
        "--json",
        "--run",
        "--allow",
        "caution",
        "--exit-code",
        "1",
    ]
    done = subprocess.run(
        [*(AS_A_USER if os.geteuid() == 0 else ()), *argv, "--command", "cp hidden/old.txt new.txt"],
        cwd=repository, input="cp: cannot stat 'hidden/old.txt': Permission denied\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert answer["recovered"] == "check_permissions"
    assert answer["result"]["files"] == ["new.txt"]


def test_more_time_is_all_that_a_call_gets_which_had_too_little(repository: Path) -> None:
    answer = remedy(repository, "", "--timed-out", "--command", "make all")
    [longer] = [one for one in answer["plans"] if one["strategy"] == "increase_timeout"]
    assert longer["steps"][0]["args"] == {"script": "make all", "timeout_ms": 240_000}


# --- servers --------------------------------------------------------------------------------------------------------

TAKEN = "OSError: [Errno 98] Address already in use\n"


def serving(port: int) -> tuple[str, ...]:
    return ("--exit-code", "1", "--command", f"{sys.executable} -u -m http.server --bind 127.0.0.1 {port}")


def test_a_server_on_another_port_has_recovered_when_it_listens_and_is_not_left_behind(repository: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        call = serving(holder.getsockname()[1])
        result = remedy(repository, TAKEN, *call, "--run", "--allow", "caution")["result"]
        port = result["listens"]
        assert result["calls"][0]["args"]["script"].endswith(f" {port}")
        assert result["exitCode"] is None, "it was ended, and did not end"
        assert "Serving HTTP" in result["output"]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        told = ask(repository, TAKEN, "remedy", *call, "--run", "--allow", "caution").stdout
    assert "Recovered by use_another_port." in told
    assert "and was ended: start it where it is wanted" in told


def test_a_server_whose_port_is_free_again_is_called_as_it_was(repository: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
    (repository / "unstuck.toml").write_text('[remedies]\nnever = ["use_another_port"]\n')
    answer = remedy(repository, TAKEN, *serving(port), "--run", "--allow", "caution")
    assert (answer["recovered"], answer["result"]["listens"]) == ("wait_for_the_port", port)


def test_what_only_uses_a_port_has_to_end_by_itself(repository: Path) -> None:
    for command, expected in (("python3 app.py", "listens"), ("pytest tests", "succeeds"), ("npm test", "succeeds")):
        answer = remedy(repository, f"{TAKEN}port 8000\n", "--exit-code", "1", "--command", command)
        assert expected in answer["plans"][0]["steps"][0]["expectedOutcome"]


# --- lines of several commands --------------------------------------------------------------------------------------

STATUS = "git: 'statsu' is not a git command. See 'git --help'.\n\nThe most similar command is\n\tstatus\n"
THERE = "mkdir: cannot create directory 'd': File exists\n"


@pytest.mark.parametrize(
    ("command", "text", "repaired"),
    [
        ("git statsu --short | head -3", STATUS, "git status --short | head -3"),
        ("git statsu && ./deploy.sh", STATUS, "git status && ./deploy.sh"),
        ("mkdir d && touch d/x && ls d", THERE, "mkdir -p d && touch d/x && ls d"),
        ("ls; grep foo d | wc -l", "grep: d: Is a directory\n", "ls; grep -r foo d | wc -l"),
        ("ls --colro | wc -l", "ls: unrecognized option '--colro'\n", "ls --color | wc -l"),
    ],
)
def test_the_one_command_of_a_line_that_failed_is_repaired(
    repository: Path, command: str, text: str, repaired: str
) -> None:
    answer = remedy(repository, text, "--exit-code", "1", "--command", command)
    assert answer["plans"][0]["steps"][0]["args"]["script"] == repaired


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("./deploy.sh && git statsu", STATUS),
        ("git statsu; ./deploy.sh", STATUS),
        ("git statsu || git statsu", STATUS),
        ("git fetch | git statsu", STATUS),
        ("mkdir d; for name in a b; do mkdir d; done", THERE),
    ],
    ids=["it was done", "it is done all the same", "twice", "two of the same program", "in a loop"],
)
def test_a_line_is_left_alone_if_something_were_done_twice_or_nobody_knows_what_failed(
    repository: Path, command: str, text: str
) -> None:
    answer = remedy(repository, text, "--exit-code", "1", "--command", command)
    assert not any(step["args"].get("script") for one in answer["plans"] for step in one["steps"])
