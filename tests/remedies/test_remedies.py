"""Recovery plans as values: forgekeeper's chains, concrete steps, what is left out and why, and that data stays data."""

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts.compile_catalog import compile_chains
from tests.growth import faster_than_linear

import unstuck
from unstuck.diagnosis.rulebook import diagnose
from unstuck.model.failure import KINDS, Kind
from unstuck.remedies.call_words import alike, plain_words
from unstuck.remedies.chain import ASK, Tools, read_catalog
from unstuck.remedies.learning import Lessons
from unstuck.remedies.recovery_plan import Plan, fill, plan_json, recovery
from unstuck.remedies.situation import Call, Preferences, Situation
from unstuck.remedies.strategies.syntax import mended_json, posix, repairs
from unstuck.remedies.surroundings import GitState, Lock, Place, Surroundings
from unstuck.shipped import shipped
from unstuck.toolchain.shell import parts

CATALOG = read_catalog()
MOST_AUTOMATED = 4
BASIC = ("run_bash", "read_dir", "read_file", "write_file")
ROOT = Surroundings(root="/srv", cwd="/srv")
HAS = frozenset(
    {"curl", "wget", "tar", "bash", "apt-get", "python3", "sudo", "sleep", "find", "ls", "xargs", "tee", "nohup", "cp"}
)

SEED = {
    "command_not_found": ["alternative_command 0.9", "manual_installation 0.6", "ask_user 0.9"],
    "tool_not_found": ["use_available_alternative 0.8", "decompose_into_basic_tools 0.7", "ask_user 0.6"],
    "permission_denied": ["try_sandbox_directory 0.9", "check_permissions 0.5", "ask_user 0.8"],
    "timeout": ["reduce_scope 0.8", "increase_timeout 0.6", "stream_results 0.7", "background_execution 0.5", "ask_user 0.8"],
    "file_not_found": ["verify_path 0.9", "create_missing_file 0.6", "ask_user 0.8"],
    "invalid_arguments": ["fix_parameter_types 1.0", "check_schema 0.9", "simplify_arguments 0.7", "ask_user 0.8"],
    "syntax_error": ["fix_syntax 0.8", "use_simpler_command 0.9", "try_alternative_syntax 0.6", "ask_user 0.8"],
    "network_error": ["retry_with_backoff 0.7", "try_alternative_host_url 0.6", "use_cached_data 0.5", "ask_user 0.8"],
    "rate_limited": ["wait_and_retry 0.9", "reduce_request_frequency 0.8", "use_alternative_api_source 0.6", "ask_user 0.8"],
    "disk_full": ["clean_up_temp_files 0.6", "write_smaller_file 0.5", "ask_user 0.9"],
}  # fmt: skip


def situation(kind: str, text: str = "", command: str = "", **more: Any) -> Situation:
    tools = more.pop("tools", None)
    call = Call(tool=more.pop("tool", ""), command=command, args=more.pop("args", {}), schema=more.pop("schema", None))
    names = Tools(frozenset(tools) if tools is not None else None, CATALOG.tables["tools"])
    last = text.strip().splitlines()[-1] if text.strip() else ""
    return Situation(kind=Kind(kind), message=last, text=text, call=call, tools=names, catalog=CATALOG, **more)


def planned(kind: str, text: str = "", command: str = "", **more: Any) -> dict[str, Any]:
    return plan_json(recovery(situation(kind, text, command, **more), Lessons()))


def strategies(answer: dict[str, Any]) -> list[str]:
    return [way["strategy"] for way in answer["plans"]]


def way(answer: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(way for way in answer["plans"] if way["strategy"] == name)
    return found


def because(answer: dict[str, Any], name: str) -> str:
    return str(next(one["because"] for one in answer["skipped"] if one["strategy"] == name))


def scripts(way: dict[str, Any]) -> list[str]:
    return [step["args"].get("script", "") for step in way["steps"]]


# --- the chains as data ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("category", SEED)
def test_a_chain_is_the_seeds_word_for_word(category: str) -> None:
    chain = CATALOG.chains[category]
    said = [f"{way.name} {way.confidence}" for way in chain.strategies] + [f"{ASK} {chain.ask_confidence}"]
    assert said == SEED[category]


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_has_a_chain_of_at_most_four_ways_that_never_repeats(kind: Kind) -> None:
    names = [way.name for way in CATALOG.chain(kind).strategies]
    assert len(names) <= MOST_AUTOMATED
    assert len(set(names)) == len(names)
    assert ASK not in names
    assert all(callable(fill(name)) for name in names)


@pytest.mark.parametrize("kind", list(Kind))
def test_every_plan_ends_in_one_question_to_a_person_even_when_nothing_is_known(kind: Kind) -> None:
    answer = plan_json(recovery(situation(str(kind)), Lessons()))
    last = answer["plans"][-1]
    assert last["strategy"] == ASK
    assert strategies(answer).count(ASK) == 1
    assert [step["tool"] for step in last["steps"]] == [None]
    assert last["steps"][0]["action"].strip()
    assert answer["kind"] == str(kind)
    assert answer["category"] == KINDS[kind].category


def test_the_compiled_chains_agree_with_their_source() -> None:
    """Make them anew with: make rules."""
    assert shipped("chains.json") == compile_chains()


# --- the seed's plan ------------------------------------------------------------------------------------------------


def test_a_clone_without_git_becomes_a_tarball_of_the_default_branch() -> None:
    answer = planned("command_not_found", "bash: git: command not found", "git clone https://github.com/user/repo",
                     names={"command": "git"}, around=ROOT._replace(binaries=HAS, manager="apt", superuser=True))  # fmt: skip
    first = answer["plans"][0]
    assert first["strategy"] == "alternative_command"
    assert first["confidence"] == 0.9
    assert first["estimatedIterations"] == 3
    assert first["fallbackChain"] == ["manual_installation", "ask_user"]
    assert "https://github.com/user/repo/archive/HEAD.tar.gz" in scripts(first)[0]
    assert first["steps"][-1]["tool"] == "read_dir"
    assert [way["priority"] for way in answer["plans"]] == [1, 2, 3]
    assert way(answer, "manual_installation")["risk"] == "privileged"


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("git clone -b dev https://github.com/a/b.git", "archive/refs/heads/dev.tar.gz"),
        ("git clone --branch=v2 https://github.com/a/b there", "-C there "),
        ("cd /tmp && git clone https://gitlab.com/g/p", "gitlab.com/g/p/-/archive/HEAD/p-HEAD.tar.gz"),
        ("git clone git@github.com:a/b.git", "https://github.com/a/b/archive/HEAD.tar.gz"),
        ("git clone --depth 1 https://github.com/a/b", "github.com/a/b/archive/HEAD.tar.gz"),
    ],
)
def test_a_clone_is_understood_however_it_is_written(command: str, wanted: str) -> None:
    answer = planned("command_not_found", "bash: git: command not found", command, names={"command": "git"})
    assert wanted in " ".join(scripts(answer["plans"][0]))


def test_the_download_uses_what_is_there() -> None:
    around = ROOT._replace(binaries=frozenset({"python3", "tar"}))
    answer = planned(
        "command_not_found",
        "bash: git: command not found",
        "git clone https://github.com/a/b",
        names={"command": "git"},
        around=around,
    )
    assert scripts(answer["plans"][0])[0].startswith("python3 -c ")


def test_without_a_shell_no_step_uses_one() -> None:
    answer = planned(
        "command_not_found",
        "git not found",
        "git clone https://github.com/user/repo",
        names={"command": "git"},
        tools=["read_file", "write_file"],
    )
    assert not [step for way in answer["plans"] for step in way["steps"] if step["tool"] == "run_bash"]
    assert "run_bash" in because(answer, "alternative_command")


def test_a_missing_tool_is_done_by_one_that_is_there() -> None:
    answer = planned("tool_not_found", "Unknown tool: repo_browser", tool="repo_browser", tools=BASIC)
    tools = [step["tool"] for way in answer["plans"] for step in way["steps"]]
    assert answer["plans"][0]["steps"][0]["tool"] == "read_dir"
    assert "repo_browser" not in tools


def test_tools_are_called_by_the_callers_names_for_them() -> None:
    answer = planned("file_not_found", "cat: a.txt: No such file or directory", "cat a.txt", tools=["Bash", "Read"])
    assert {step["tool"] for way in answer["plans"][:-1] for step in way["steps"]} == {"Bash"}
    assert answer["plans"][0]["steps"][0]["args"]["command"] == "ls -la -- ."


@pytest.mark.parametrize(
    ("wishes", "why"),
    [(Preferences(never_install=True), "never_install"), (Preferences(never_sudo=True), "never_sudo")],
    ids=["never_install", "never_sudo"],
)
def test_the_users_wishes_leave_ways_out_and_say_so(wishes: Preferences, why: str) -> None:
    around = ROOT._replace(binaries=HAS, manager="apt")
    answer = planned(
        "command_not_found",
        "bash: jq: command not found",
        "jq . a",
        names={"command": "jq"},
        around=around,
        preferences=wishes,
    )
    assert why in because(answer, "manual_installation")


def test_the_right_package_for_this_system_is_named() -> None:
    for manager, package in {"apt": "fd-find", "apk": "fd", "pacman": "fd"}.items():
        around = ROOT._replace(binaries=HAS | {"apk", "pacman"}, manager=manager, superuser=True)
        answer = planned(
            "command_not_found", "bash: fd: command not found", "fd x", names={"command": "fd"}, around=around
        )
        assert any(script.endswith(package) for script in scripts(way(answer, "manual_installation")))


@pytest.mark.parametrize(
    ("missing", "why"),
    [
        ("pyhton3", "looks like python3, which is there"),
        ("run.sh", "nobody here knows a package that has run.sh"),
        ("frobnicate", "nobody here knows a package"),
    ],
)
def test_what_is_no_package_is_not_installed(missing: str, why: str) -> None:
    around = ROOT._replace(binaries=HAS, manager="apt", superuser=True)
    answer = planned("command_not_found", f"bash: {missing}: command not found", missing, around=around)
    assert why in because(answer, "manual_installation")


SAME = {
    "md5sum a.txt b.txt": "openssl dgst -r -md5 a.txt b.txt",
    "md5sum -c sums": "",
    "sha256sum --check sums": "",
    "yarn": "npm install",
    "yarn run build": "npm run build",
    "yarn build": "npm run build",
    "yarn upgrade": "",
    "pnpm -r build": "",
    "rg needle src": "grep -rnI --exclude-dir=.git needle src",
    "rg -v 'foo|bar'": "",
    "netstat -tln": "ss -tln",
    "netstat -i": "",
    "hostname": "uname -n",
    "hostname -i": "",
    "unzip a.zip d/a.txt": "",
    "cmake .": "",
    "lzip f": "",
    "gcovr .": "",
    "gzpi f": "gzip f",
}


def test_another_program_is_called_only_where_it_does_the_same() -> None:
    there = ROOT._replace(binaries=HAS | {"openssl", "npm", "grep", "ss", "uname", "gmake", "gzip", "gcov", "bsdtar"})
    answers = {
        call: planned("command_not_found", f"bash: {call.split()[0]}: command not found", call, around=there)
        for call in SAME
    }
    called = {call: scripts(answer["plans"][0])[0] for call, answer in answers.items() if "alternative_command" in strategies(answer)}  # fmt: skip
    assert called == {call: other for call, other in SAME.items() if other}


def test_of_two_programs_that_may_be_meant_none_is_called() -> None:
    there = ROOT._replace(binaries=HAS | {"pylint", "pylont"})
    assert "alternative_command" not in strategies(planned("command_not_found", "bash: pylnt: command not found", "pylnt a.py", around=there))  # fmt: skip


def test_what_is_written_elsewhere_is_advice() -> None:
    outside = Place(path="/usr/local/bin/a", parent="/usr/local/bin")
    text = "cp: cannot create regular file '/usr/local/bin/a': Permission denied"
    made = recovery(situation("permission_denied", text, "cp a /usr/local/bin/a", around=ROOT._replace(place=outside)), Lessons())  # fmt: skip
    assert [one.proves for one in made.strategies if one.strategy == "try_sandbox_directory"] == [False]


def test_a_file_of_that_name_is_a_download_only_where_downloads_are_kept(tmp_path: Path) -> None:
    text, command = (
        "curl: (7) Failed to connect to example.org port 80",
        "curl -o got.json http://example.org/config.json",
    )
    for folder, is_copy in (("vendor", False), (".", False), ("downloads", True)):
        path = tmp_path / folder.replace(".", "here") / folder / "config.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
        root = tmp_path / folder.replace(".", "here")
        made = unstuck.remedy(unstuck.diagnose(text, exit_code=7, command=command), cwd=root)
        assert ("use_cached_data" in strategies(made)) is is_copy, folder


def test_an_exploring_task_creates_nothing() -> None:
    text = "cat: a.txt: No such file or directory"
    assert "create_missing_file" in strategies(planned("file_not_found", text, "cat a.txt"))
    assert "explor" in because(
        planned("file_not_found", text, "cat a.txt", task_type="exploratory"), "create_missing_file"
    )


def test_hosts_that_are_not_allowed_are_not_talked_to() -> None:
    wishes = Preferences(allowed_hosts=("intranet.example",))
    answer = planned(
        "command_not_found",
        "git: command not found",
        "git clone https://github.com/a/b",
        names={"command": "git"},
        preferences=wishes,
    )
    assert "allowed hosts" in because(answer, "alternative_command")


# --- concrete steps -------------------------------------------------------------------------------------------------


def test_near_names_are_ranked_by_case_then_spelling_then_place() -> None:
    place = Place(
        path="Config.yaml",
        inside=True,
        parent=".",
        names=("config.yaml", "confog.yaml", "other"),
        twins=("deep/Config.yaml",),
    )
    answer = planned(
        "file_not_found",
        "cat: Config.yaml: No such file or directory",
        "cat Config.yaml",
        around=ROOT._replace(place=place),
    )
    assert scripts(answer["plans"][0])[1] == "cat config.yaml"


NO_FILE = "No such file or directory"
CD = "cd src && "


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a repository in which a file was renamed. Made once: look at it, change nothing."""
    root = tmp_path_factory.mktemp("moved")
    for name in ("src/old.txt", "src/settings.txt", "one/setup.cfg", "two/setup.cfg"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("text\n" * 9)
    commit = "git -c user.name=a -c user.email=a@b commit -qm x"
    script = f"git init -q && git add . && {commit} && git mv src/old.txt src/new.txt && {commit}"
    subprocess.run(["bash", "-c", script], cwd=root, check=True)
    return root


@pytest.mark.parametrize(
    ("command", "said", "first"),
    [
        ("cat src/old.txt", f"cat: src/old.txt: {NO_FILE}", "cat src/new.txt"),
        ("cat setup.cfg", f"cat: setup.cfg: {NO_FILE}", ""),
        (f"{CD}cat setings.txt", f"cat: setings.txt: {NO_FILE}", f"{CD}cat settings.txt"),
        (f"{CD}touch a/b", f"touch: cannot touch 'a/b': {NO_FILE}", f"{CD}touch a/b"),
        (f"cat {'a' * 300}", f"cat: {'a' * 300}: {NO_FILE}", ""),
        ("python3 -m json.tol a.json", "python3: No module named json.tol", "python3 -m json.tool a.json"),
        ("python3 -m unitest", "python3: No module named unitest", "python3 -m unittest"),
        ("python3 -m httpx", "python3: No module named httpx", ""),
        ("ls --colr=never src", "ls: unrecognized option '--colr=never'", "ls --color=never src"),
        ("sort --nummeric a", "sort: unrecognized option '--nummeric'", ""),
        ("ls --emoji src", "ls: unrecognized option '--emoji'", "ls src"),
    ],
)  # fmt: skip
def test_what_a_call_meant_is_looked_up_on_the_machine(moved: Path, command: str, said: str, first: str) -> None:
    """What git renamed, what Python and the program itself know; of several that may be meant none is called."""
    made = unstuck.remedy(unstuck.diagnose(said, exit_code=1, command=command), cwd=moved)
    proving = (way.steps[-1].call.args["script"] for way in made.plans if way.proves)
    assert next(proving, "") == first


@pytest.mark.parametrize(
    ("denied", "kept"),
    [
        ("/etc/app/conf.d/x.conf", ".unstuck/sandbox/etc/app/conf.d/x.conf"),
        ("../../../etc/passwd", ".unstuck/sandbox/etc/passwd"),
        ("/srv/sub/file.txt", ".unstuck/sandbox/sub/file.txt"),
    ],
)
def test_a_denied_path_keeps_its_folders_in_the_sandbox_and_never_leaves_it(denied: str, kept: str) -> None:
    answer = planned("permission_denied", f"Error: EACCES: permission denied, open '{denied}'", tool="write_file",
                     args={"file": denied, "content": "x"}, around=ROOT, tools=BASIC)  # fmt: skip
    assert answer["plans"][0]["strategy"] == "try_sandbox_directory"
    written = [step["args"]["file"] for step in answer["plans"][0]["steps"] if step["tool"] == "write_file"]
    assert written == [kept]


def test_reading_a_denied_file_is_not_moved_elsewhere() -> None:
    answer = planned("permission_denied", "cat: /etc/shadow: Permission denied", "cat /etc/shadow", around=ROOT)
    assert "reading" in because(answer, "try_sandbox_directory")
    place = Place(path="a.txt", exists=True, inside=True)
    answer = planned(
        "permission_denied", "tee: a.txt: Permission denied", "tee a.txt", around=ROOT._replace(place=place)
    )
    assert "never land" in because(answer, "try_sandbox_directory"), "whoever owns it"


def test_scope_is_reduced_by_the_real_argument_list() -> None:
    files = tuple(f"f{number}.py" for number in range(25))
    answer = planned("timeout", "", "black " + " ".join(files), around=ROOT._replace(files=frozenset(files)))
    parts = [shlex.split(script)[1:] for script in scripts(way(answer, "reduce_scope"))]
    assert [name for part in parts for name in part] == list(files)
    assert max(map(len, parts)) <= 10


def test_of_several_folders_each_is_a_part() -> None:
    around = ROOT._replace(folders={"src": ("src/a.py", "src/b.py"), "tests": ("tests/a.py",)})
    answer = planned("timeout", "", "ruff check src tests", around=around)
    assert scripts(way(answer, "reduce_scope")) == ["ruff check src", "ruff check tests"]


def test_changes_are_not_put_aside_where_there_is_nothing_to_commit() -> None:
    text = 'nothing added to commit but untracked files present (use "git add" to track)'
    answer = planned("git_refused", text, "git commit -m x", around=ROOT._replace(git=GitState(changed=True)))
    assert strategies(answer) == [ASK]


def test_nothing_is_divided_whose_parts_do_not_add_up() -> None:
    files = ("a.py", "b.py", "c.py", "d.py")
    whole = (
        "tar czf x.tgz",
        "zip x.zip",
        "gcc -o app",
        "cp -t out",
        "./convert.sh",
        "sort",
        "cat",
        "pytest --cov",
        "ruff check --output-file=all.txt",
        "make",
    )
    divided = ("pytest", "ruff check", "python3 -m pytest -q", "eslint", "shellcheck")
    around = ROOT._replace(files=frozenset(files))
    found = {
        call: "reduce_scope" in strategies(planned("timeout", "", f"{call} {' '.join(files)}", around=around))
        for call in (*whole, *divided)
    }
    assert found == dict.fromkeys(whole, False) | dict.fromkeys(divided, True)


def test_only_a_misspelled_word_is_taken_for_another() -> None:
    same = (
        ("setings.json", "settings.json"),
        ("pyhton3", "python3"),
        ("gti", "git"),
        ("my_confg.toml", "my_config.toml"),
    )
    other = (("ab.py", "a.py"), ("jqq", "jq"), ("report2.txt", "report1.txt"), ("test_a.py", "test_b.py"), ("v1.json", "v2.json"), ("ls", "ps"), ("main.py", "maid_service.py"), ("activate", "deactivate"), ("ascending", "descending"), ("mount", "umount"), ("internal", "external"), ("increment", "decrement"))  # fmt: skip
    assert [pair for pair in same if not alike(*pair)] == []
    assert [pair for pair in other if alike(*pair)] == []


def test_a_shell_is_known_by_any_of_its_names() -> None:
    shells = ("sh", "execute_shell", "shell_exec", "container.exec", "mcp__box__run_command", "runCommand", "bash", "functions.shell", "execute_bash", "local_shell", "run_in_terminal")  # fmt: skip
    others = (
        "execute_sql",
        "read_file",
        "run_tests",
        "exec_query",
        "search",
        "command_history",
        "mcp__shell__read_file",
    )
    known = Tools(None, CATALOG.tables["tools"])
    assert [name for name in shells if not known.is_shell(name)] == []
    assert [name for name in others if known.is_shell(name)] == []


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("mcp__fs__read_text_file", "read_file"),
        ("getFileContents", "read_file"),
        ("fs.list_files", "read_dir"),
        ("list_directory_contents", "read_dir"),
        ("save_file", "write_file"),
        ("read_multiple_files", ""),
        ("get_profile", ""),
        ("create_issue", ""),
    ],
)
def test_a_basic_tool_is_known_by_its_words_and_called_as_its_schema_says(name: str, role: str) -> None:
    schema = {"type": "object", "properties": {"filename": {}, "contents": {}}, "required": ["filename", "contents"]}
    known = Tools(frozenset({name}), CATALOG.tables["tools"], {name: schema})
    found = {one: known.basic(one) for one in BASIC}
    assert [one for one, row in found.items() if row] == ([role] if role else [])
    if role == "write_file":
        assert found[role] == (name, "filename", "contents")


@pytest.mark.parametrize(
    ("kind", "text", "command", "asks"),
    [
        ("invalid_arguments", "make: *** No rule to make target 'tset'.", "make tset", "how make tset should be called: make: *** No rule"),
        ("file_not_found", "fatal: 'origin' does not appear to be a git repository", "git push origin main", "what to do about: fatal: 'origin' does"),
        ("file_not_found", "jq: error: Could not open file a.json: No such file or directory", "jq . a.json", "path of a.json."),
        ("file_not_found", "tar (child): out/a.tgz: Cannot open: No such file or directory", "tar czf out/a.tgz src", "path of out/a.tgz."),
        ("permission_denied", "sed: couldn't open temporary file logs/sedXy1: Permission denied", "sed -i s/a/b/ logs/a", "access to logs/sedXy1,"),
        ("permission_denied", "bash: line 1: kill: (1) - Operation not permitted", "kill 1", "what to do about: bash: line 1: kill: (1)"),
        ("disk_full", "fatal: unable to write loose object file: No space left on device", "git add .", "space in /srv,"),
        ("disk_full", "sed: couldn't flush <unknown>: No space left on device", "sed -i s/a/b/ a", "space in /srv,"),
        ("disk_full", "cp: error writing 'copy': No space left on device", "cp a copy", "space in /srv,"),
        ("network_error", "the network is gone", "", "what to do about: the network is gone"),
        ("dependency_missing", "python: No module named pytest", "python -m pytest", "install pytest,"),
        ("dependency_missing", "ModuleNotFoundError: No module named 'srv.helper'", "python3 main.py", "srv.helper, which the project's own srv does not have"),
        ("environment_missing", "s.sh: line 2: NAME: unbound variable", "bash s.sh", "set NAME."),
    ],
)  # fmt: skip
def test_a_question_is_about_what_was_called_and_what_is_missing(kind: str, text: str, command: str, asks: str) -> None:
    found, around = diagnose(text, exit_code=1), ROOT._replace(root_names=frozenset({"srv"}))
    answer = planned(kind, text, command, around=around, tool="run_bash", names=dict(found.names if found else ()))
    assert asks in answer["plans"][-1]["steps"][0]["action"]


def test_a_program_that_looks_for_its_project_is_called_where_the_project_is() -> None:
    text = "npm error enoent Could not read package.json: Error: ENOENT: no such file or directory, open '/srv/package.json'"
    one = Place(path="/srv/package.json", inside=True, twins=("app/package.json",))
    found = planned("file_not_found", text, "npm test", around=ROOT._replace(place=one))
    assert scripts(found["plans"][0])[0].endswith("remedy app npm test")
    two = one._replace(twins=("app/package.json", "web/package.json"))
    assert "npm test" not in str(
        planned("file_not_found", text, "npm test", around=ROOT._replace(place=two))["plans"][0]
    )


@pytest.mark.parametrize(
    ("wanted", "command"),
    [("od.log", "rm od.log"), ("*.log", "ls *.log"), ("main", "git checkout main"), ("no.h", "gcc a.c"), ("package.json", "npm test"), ("jqq", "python3 check.py")],
)  # fmt: skip
def test_an_empty_file_is_not_made_where_it_would_help_nobody(wanted: str, command: str) -> None:
    answer = planned("file_not_found", f"x: {wanted}: No such file or directory", command, around=ROOT)
    assert because(answer, "create_missing_file") == f"an empty {wanted} is not what the call needs"


@pytest.mark.parametrize(
    "said",
    [
        "Error: limit should be number, got string",
        "InputValidationError: Read failed: The parameter `limit` type is expected as `number` but provided as `string`",
        "1 validation error for Args\nlimit\n  Input should be a valid integer [type=int_type, input_type=str]",
        "Tool parameter has wrong type: limit must be integer",
        "Invalid arguments: 'limit' must be of type int",
    ],
)
def test_a_message_that_names_the_right_type_is_enough_without_a_schema(said: str) -> None:
    answer = planned("invalid_arguments", said, tool="Read", args={"file": "a", "limit": "5"}, tools=["Read"])
    assert way(answer, "fix_parameter_types")["steps"][0]["args"] == {"file": "a", "limit": 5}


@pytest.mark.parametrize("option", ["--dry-run", "--check", "-n", "--no-clobber"])
def test_an_option_that_holds_a_call_back_is_never_left_out(option: str) -> None:
    answer = planned("invalid_arguments", f"cp: unrecognized option '{option}'", f"cp {option} a b")
    assert strategies(answer) == [ASK]


def test_a_tools_own_limit_is_doubled_and_nothing_else_changes() -> None:
    answer = planned(
        "timeout", "timed out", tool="fetch", args={"url": "http://x/", "timeout_ms": 15000}, tools=["fetch"]
    )
    assert way(answer, "increase_timeout")["steps"][0]["args"] == {"url": "http://x/", "timeout_ms": 30000}


def test_a_stated_reset_is_waited_for_and_a_distant_one_is_not() -> None:
    near = planned("rate_limited", "429 Too Many Requests", "curl http://x/", reset=7.0)
    assert scripts(way(near, "wait_and_retry"))[0] == "sleep 8"
    far = planned("rate_limited", "429 Too Many Requests", "curl http://x/", reset=7200.0)
    assert "120 minutes" in because(far, "wait_and_retry")


@pytest.mark.parametrize(
    ("tool", "kind", "risk"),
    [
        ("send_email", "timeout", "destructive"),
        ("delete_list", "network_error", "caution"),
        ("read_page", "network_error", "safe"),
        ("send_email", "rate_limited", "safe"),
    ],
)
def test_a_tool_that_may_have_done_its_work_is_not_called_again_unasked(tool: str, kind: str, risk: str) -> None:
    answer = planned(kind, "", tool=tool, args={"timeout": 5}, tools=(tool, *BASIC))
    assert answer["plans"][0]["risk"] == risk


@pytest.mark.parametrize(
    ("command", "said", "risk"),
    [
        ("curl -d a=1 http://x/", "Empty reply from server", "destructive"),
        ("true && curl -sXPOST http://x/ | cat", "Recv failure: Connection reset by peer", "destructive"),
        ("curl -d a=1 http://x/", "Failed to connect: Connection refused", "caution"),
        ("curl -d a=1 http://x/", "curl: (7) Failed to connect to x port 80: Couldn't connect to server", "caution"),
        ("curl http://x/", "Empty reply from server", "safe"),
        ("git push origin main", "the remote end hung up unexpectedly", "destructive"),
        ("make deploy", "read: connection timed out", "destructive"),
        ("make deploy --dry-run", "read: connection timed out", "caution"),
        ("kubectl apply -f a.yml", "unexpected EOF", "destructive"),
        ("kubectl get pods", "unexpected EOF", "caution"),
        ("pytest tests/test_deploy.py", "Connection reset by peer", "safe"),
    ],
)
def test_what_may_have_had_its_effect_on_others_is_not_repeated_by_care_alone(
    command: str, said: str, risk: str
) -> None:
    assert way(planned("network_error", said, command), "retry_with_backoff")["risk"] == risk


def test_without_a_shell_one_waits_oneself() -> None:
    answer = planned("rate_limited", "429", tool="send_email", args={"to": "a"}, tools=("send_email",), reset=20.0)
    assert [(step["tool"], step["args"]) for step in answer["plans"][0]["steps"]] == [
        (None, {"seconds": 21.0}),
        ("send_email", {"to": "a"}),
    ]


def test_only_exact_paths_of_ours_are_deleted() -> None:
    answer = planned(
        "disk_full", "No space left on device", "make", around=ROOT._replace(ours=(("/srv/.pytest_cache", 9_000),))
    )
    assert scripts(answer["plans"][0])[0] == "rm -rf -- /srv/.pytest_cache"
    nothing = planned("disk_full", "No space left on device", "make", around=ROOT)
    assert "ours" in because(nothing, "clean_up_temp_files")


@pytest.mark.parametrize(
    ("lock", "why"),
    [
        (Lock(path="/x/.git/index.lock", inside=False, held=False, age=99), "outside"),
        (Lock(path=".git/index.lock", inside=True, held=True, age=99), "in use"),
    ],
    ids=["elsewhere", "held"],
)
def test_a_lock_is_removed_only_when_it_is_proven_stale(lock: Lock, why: str) -> None:
    answer = planned(
        "resource_busy",
        "fatal: Unable to create '.git/index.lock': File exists",
        "git add .",
        around=ROOT._replace(lock=lock),
    )
    assert why in because(answer, "remove_stale_lock")


def test_a_new_lock_is_removed_only_if_it_is_still_the_same_a_little_later(tmp_path: Path) -> None:
    lock = tmp_path / "x.lock"
    around = ROOT._replace(lock=Lock(path=str(lock), inside=True, held=False, age=0.1))
    answer = planned("git_refused", f"Unable to create '{lock}': File exists", "git add .", around=around)
    at_once = scripts(way(answer, "remove_stale_lock"))[0].replace("sleep", "true")
    lock.touch()
    subprocess.run(["bash", "-c", at_once], check=True)
    assert lock.exists(), "somebody made it anew"
    os.utime(lock, (1, 1))
    subprocess.run(["bash", "-c", at_once], check=True)
    assert not lock.exists()


def test_half_a_merge_is_kept_before_it_is_aborted() -> None:
    around = ROOT._replace(git=GitState(operation="merge", unmerged=("a.txt",)))
    answer = planned("merge_conflict", "error: you have unmerged files", "git commit -m x", around=around)
    steps = scripts(way(answer, "abort_half_done"))
    assert "refs/unstuck/remedies" in steps[0]
    assert "git merge --abort" in steps


@pytest.mark.parametrize(
    ("words", "risk"),
    [("curl -sS http://127.0.0.1/x", "safe"), ("curl -XPOST http://127.0.0.1/x", "caution"), ("npm publish", "caution"),
     ("git push", "caution"), ("find . -delete", "caution"), ("curl -s http://127.0.0.1/ | sh", "caution")],
)  # fmt: skip
def test_only_calls_that_may_be_repeated_are_repeated_without_asking(words: str, risk: str) -> None:
    assert way(planned("network_error", "connection refused", words), "retry_with_backoff")["risk"] == risk


FAILURES = [
    (
        "command_not_found",
        "bash: git: command not found",
        "git clone https://github.com/a/b",
        {"names": {"command": "git"}},
    ),
    ("file_not_found", "cat: a.txt: No such file or directory", "cat a.txt", {}),
    ("permission_denied", "touch: cannot touch '/etc/x': Permission denied", "touch /etc/x", {}),
    ("timeout", "", "pytest tests", {}),
    ("network_error", "curl: (7) Failed to connect", "curl http://127.0.0.1:1/", {}),
    ("rate_limited", "429", "curl http://127.0.0.1:1/", {}),
    ("syntax_error", "unexpected EOF", 'echo "a', {}),
    ("tool_not_found", "Unknown tool: repo_browser", "", {"tool": "repo_browser", "args": {"path": "."}}),
    ("invalid_arguments", "count should be number, got string", "", {"tool": "count", "args": {"count": "5"}}),
    ("disk_full", "No space left on device", "make", {}),
]


@pytest.mark.parametrize(
    ("kind", "text", "command", "more"),
    FAILURES,
    ids=lambda value: value if isinstance(value, str) and value in SEED else "",
)
def test_the_failing_call_is_never_simply_repeated(kind: str, text: str, command: str, more: dict[str, Any]) -> None:
    made = recovery(situation(kind, text, command, **more), Lessons())
    for strategy in made.strategies[:-1]:
        first = strategy.steps[0].call.args
        assert first != {"script": command}, strategy.strategy
        assert first != more.get("args"), strategy.strategy


# --- data stays data ------------------------------------------------------------------------------------------------

HOSTILE = [
    "$(touch pwned)",
    "; touch pwned",
    "`touch pwned`",
    "a\nb",
    "-rf",
    "--help",
    "a b",
    "'",
    '"',
    "\\",
    "*",
    "~",
    "a;b&c|d>e",
    "${HOME}",
    "!x",
    "\u2028",
]
nasty = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12),
)


def words_of(scripts: list[str]) -> list[list[str]]:
    """Return the words that bash itself makes of each script; the scripts' own commands are not run."""
    told = "\n".join(f"set -- {script}\nprintf '%s\\0' $# \"$@\"" for script in scripts)
    done = subprocess.run(["bash", "-c", told], capture_output=True, check=True)
    words = iter(done.stdout.decode(errors="surrogateescape").split("\0")[:-1])
    return [[next(words) for _ in range(int(count))] for count in words]


def steps_of(made: Plan) -> list[tuple[str, Any]]:
    return [
        (told.call.args["script"], told.step.operation)
        for way in made.strategies
        for told in way.steps
        if "script" in told.call.args
    ]


@settings(max_examples=40, deadline=None)
@given(evil=nasty)
def test_hostile_names_never_become_code(evil: str) -> None:
    """Whatever a path, address, branch or package is called, bash reads our steps as exactly the words we meant."""
    quoted = shlex.quote(evil)
    made = [
        recovery(situation("command_not_found", "git: command not found", f"git clone -b {quoted} https://github.com/a/{quoted} {quoted}", names={"command": "git"}), Lessons()),
        recovery(situation("file_not_found", "", "", tool="read_file", args={"file": evil}), Lessons()),
        recovery(situation("permission_denied", "", "", tool="write_file", args={"file": evil, "content": evil}, around=ROOT), Lessons()),
        recovery(situation("dependency_missing", "", "python3 x.py", names={"package": evil}, around=ROOT._replace(local_packages=(f"vendor/{evil}.whl",))), Lessons()),
        recovery(situation("timeout", "", f"black {quoted}/x.py {quoted}/y.py"), Lessons()),
        recovery(situation("resource_busy", "", "git add .", around=ROOT._replace(lock=Lock(path=evil, inside=True, held=False, age=60))), Lessons()),
    ]  # fmt: skip
    steps = [one for each in made for one in steps_of(each)]
    for (script, operation), words in zip(steps, words_of([script for script, _ in steps]), strict=True):
        argv = list(getattr(operation, "argv", ())) or shlex.split(script)
        env = [f"{key}={value}" for key, value in getattr(operation, "env", {}).items()]
        assert words == (["env", *env] if env else []) + argv


def test_nothing_of_a_failure_stands_in_the_text_of_a_fixed_script() -> None:
    """`bash -c` of ours gets constants; what varies comes in as arguments behind it."""
    evil = "MARKER$(x)"
    made = recovery(situation("network_error", evil, f"curl {shlex.quote('http://h/' + evil)}"), Lessons())
    for _, operation in steps_of(made):
        if getattr(operation, "argv", ())[:2] == ("bash", "-c"):
            assert "MARKER" not in operation.argv[2]


def test_a_plan_is_json_whatever_the_failure_says() -> None:
    answer = planned("unknown", "\x1b[31m\udcff\x00" * 50, "x")
    assert json.loads(json.dumps(answer)) == answer


HOSTILE = ["[[ ", "<<<", "a <<< ", "{1..", '"', "'\"`", "if [", "(;", "<< a", "( ", "for x ", "$((", "\\"]


@pytest.mark.parametrize("read", [repairs, posix, mended_json, parts, plain_words])
def test_a_hostile_script_is_read_in_linear_time(read: Callable[[str], object]) -> None:
    assert faster_than_linear([piece * (16_000 // len(piece)) for piece in HOSTILE], read) == []


@pytest.mark.parametrize(
    ("script", "meant"),
    [
        ('echo "hi', 'echo "hi"'),
        ("for i in 1 2; do echo $i", "for i in 1 2; do echo $i; done"),
        ("if true; then for x in a; do echo $x", "if true; then for x in a; do echo $x; done; fi"),
        ("echo a &&", "echo a"),
        ("cat <<EOF\nhello", "cat <<EOF\nhello\nEOF\n"),
        ("if [ -f x]; then echo y; fi", "if [ -f x ]; then echo y; fi"),
        ("echo \u201chi\u201d", 'echo "hi"'),
        ("(cd /tmp && ls", "(cd /tmp && ls)"),
    ],
)
def test_common_mistakes_have_their_repair_among_the_candidates(script: str, meant: str) -> None:
    assert meant in repairs(script)


@pytest.mark.parametrize(
    ("script", "meant"),
    [
        ("[[ $a == b && -n $c ]]", "[ $a = b ] && [ -n $c ]"),
        ("function f { ls; }", "f() { ls; }"),
        ("make &> log; ls", "make >log 2>&1; ls"),
        ("source env.sh", ". env.sh"),
        ('cat <<< "hi"', "printf '%s\\n' \"hi\" | cat"),
        ("for i in {1..3}; do :; done", "for i in 1 2 3; do :; done"),
    ],
)
def test_what_only_bash_reads_has_a_form_that_every_shell_reads(script: str, meant: str) -> None:
    assert posix(script) == meant
    assert subprocess.run(["sh", "-n"], input=meant.encode(), check=False).returncode == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1,}', {"a": 1}),
        ("{'a': 'b'}", {"a": "b"}),
        ('{"a": "x, }" /* c */}', {"a": "x, }"}),
        ("{a: True, b: None}", {"a": True, "b": None}),
        ("{half", None),
    ],
)
def test_hand_written_json_is_mended_where_nothing_is_guessed(text: str, value: Any) -> None:
    mended = mended_json(text)
    assert (json.loads(mended) if mended else None) == value
