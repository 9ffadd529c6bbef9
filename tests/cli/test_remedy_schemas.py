"""`unstuck remedy` for calls of tools whose schemas are given: what breaks a schema is judged by it, and no step breaks one."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.cli.test_remedy import remedy

import unstuck

SEARCH: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "maximum": 100}},
    "required": ["path"],
}


def arguments(**given: Any) -> list[str]:
    return [word for name, value in given.items() for word in ("--arg", f"{name}={json.dumps(value)}")]


def asked(cwd: Path, text: str, schema: Any, *more: str, **given: Any) -> Any:
    return remedy(cwd, text, "--tool", "search", "--schema", json.dumps(schema), *more, *arguments(**given))


@pytest.mark.parametrize(
    "text",
    [
        "limit\n  Input should be a valid integer, unable to parse string as an integer [type=int_parsing, input_value='5', input_type=str]",
        "params/limit must be number",
        "json: cannot unmarshal string into Go struct field Args.limit of type int",
        'Expected property "limit" to be number but got string',
        "TypeError: '<' not supported between instances of 'str' and 'int'",
        "it did not work",
        "",
    ],
)
def test_arguments_that_break_the_schema_are_wrong_whatever_the_message_says(tmp_path: Path, text: str) -> None:
    answer = asked(tmp_path, text, SEARCH, path="a", limit="5")
    assert answer["kind"] == "invalid_arguments"
    assert answer["plans"][0]["steps"][0]["args"] == {"path": "a", "limit": 5}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"path": "a", "limit": 500}, "limit is more than 100"),
        ({"path": "a", "limit": "ten"}, "limit is no integer"),
        ({"limit": 5}, "path is missing"),
    ],
)
def test_the_question_says_which_argument_breaks_the_schema(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    text = "1 validation error for Args\n  Input should be less than or equal to 100 [type=less_than_equal]\n"
    assert said in asked(tmp_path, text, SEARCH, **given)["plans"][-1]["steps"][0]["action"]


def test_a_schema_that_is_kept_is_no_evidence_and_what_a_server_met_is_told_as_that(tmp_path: Path) -> None:
    assert asked(tmp_path, "3 files", SEARCH, path="a", limit=5)["plans"] == []
    assert asked(tmp_path, "done", SEARCH, "--exit-code", "0", path="a", limit="5")["plans"] == []
    missing = asked(tmp_path, "ENOENT: no such file or directory, open 'a'", SEARCH, path="a", limit="5")
    assert missing["kind"] == "file_not_found", "it was opened, so the arguments were taken"
    shell = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command", "description"]}
    ran = remedy(
        tmp_path, "1 failed, 3 passed in 0.1s\n", "--tool", "bash", "--schema", json.dumps(shell), "--exit-code", "1",
        *arguments(command="pytest"),
    )  # fmt: skip
    assert ran["kind"] == "test_failed", "what was run had been taken"


FORMS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "depth": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "mode": {"$ref": "#/$defs/Mode"},
        "where": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
        "names": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "again": {"$ref": "#"},
    },
    "$defs": {"Mode": {"enum": ["fast", "slow"], "type": "string"}},
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "given",
    [
        {"depth": "3", "mode": "Fast"},
        {"where": {"x": "1.5"}, "names": "a,b"},
        {"names": []},
        {"again": {"again": {"depth": "x"}}},
        {"colour": 1},
        {"where": {}},
    ],
    ids=str,
)
def test_a_schema_is_read_as_its_readers_do(tmp_path: Path, given: dict[str, Any]) -> None:
    reader = jsonschema.Draft202012Validator(FORMS)
    assert not reader.is_valid(given)
    answer = asked(tmp_path, "refused", FORMS, **given)
    assert answer["kind"] == "invalid_arguments"
    for one in answer["plans"]:
        assert all(reader.is_valid(step["args"]) for step in one["steps"] if step["tool"] == "search")


def test_the_library_judges_by_the_schema_too() -> None:
    failure = unstuck.diagnose("json: cannot unmarshal string into Go struct field Args.limit of type int", tool="find")
    plan = unstuck.remedy(failure, args={"path": "a", "limit": "5"}, schema=SEARCH)
    assert plan.kind == "invalid_arguments"
    assert plan["plans"][0]["steps"][0]["args"] == {"path": "a", "limit": 5}
    assert unstuck.remedy(None, args={"path": "a", "limit": 5}, schema=SEARCH)["failed"] is False


# --- what a step tells a tool ---------------------------------------------------------------------------------------


def tool(name: str, required: str, **properties: Any) -> dict[str, Any]:
    """Return the definition of a tool; a property is told by its type, or by its schema."""
    schemas = {key: {"type": kind} if isinstance(kind, str) else kind for key, kind in properties.items()}
    return {"name": name, "input_schema": {"type": "object", "properties": schemas, "required": required.split()}}


BASH = tool("Bash", "command description", command="string", description="string", timeout={"type": "number", "maximum": 600_000})  # fmt: skip
MISSING = "cat: Config.YAML: No such file or directory\n"


def steps(cwd: Path, text: str, tools: list[dict[str, Any]], *more: str, **given: Any) -> list[tuple[str, Any]]:
    """Return the calls of all ways; every one of them satisfies the schema of its tool."""
    (cwd / "config.yaml").write_text("right")
    answer = remedy(cwd, text, "--tools", json.dumps(tools), *more, *arguments(**given))
    schemas = {one["name"]: one["input_schema"] for one in tools}
    result = [(step["tool"], step["args"]) for one in answer["plans"][:-1] for step in one["steps"]]
    for name, args in result:
        jsonschema.validate(args, schemas[name])
    return result


def test_a_repaired_call_keeps_what_else_the_call_said(tmp_path: Path) -> None:
    call = ("--exit-code", "1", "--tool", "Bash")
    result = steps(tmp_path, MISSING, [BASH], *call, command="cat Config.YAML", description="Read it", timeout=120_000)
    looking, repaired = result[:2]
    assert looking[1]["description"] != "Read it", "another step is said otherwise"
    assert repaired == ("Bash", {"command": "cat config.yaml", "description": "Read it", "timeout": 120_000})


def test_the_shell_that_failed_is_the_one_that_is_asked_in_its_session(tmp_path: Path) -> None:
    shell = tool("shell_exec", "session_id cmdline", session_id="string", cmdline="string", cwd="string")
    call = ("--exit-code", "1", "--tool", "shell_exec")
    result = steps(tmp_path, MISSING, [BASH, shell], *call, session_id="s7", cmdline="cat Config.YAML")
    assert result[1] == ("shell_exec", {"session_id": "s7", "cmdline": "cat config.yaml"})
    assert steps(tmp_path, MISSING, [shell], "--exit-code", "1", "--command", "cat Config.YAML") == []


def test_a_program_with_its_words_beside_it_is_a_command(tmp_path: Path) -> None:
    shell = tool("exec", "command", command="string", args={"type": "array", "items": {"type": "string"}})
    result = steps(
        tmp_path, MISSING, [shell], "--exit-code", "1", "--tool", "exec", command="cat", args=["Config.YAML"]
    )
    assert result[1] == ("exec", {"command": "bash", "args": ["-lc", "cat config.yaml"]})


def test_more_time_is_told_to_the_shell_as_far_as_it_may_have_it(tmp_path: Path) -> None:
    def longest(milliseconds: int) -> set[Any]:
        given = {"command": "make all", "description": "Make", "timeout": milliseconds}
        result = steps(tmp_path, "timed out", [BASH], "--timed-out", "--tool", "Bash", **given)
        return {args["timeout"] for _, args in result}

    assert longest(120_000) == {120_000, 240_000}
    assert longest(500_000) == {500_000}


def test_an_address_of_a_file_is_a_path_and_stays_an_address(tmp_path: Path) -> None:
    tools = [tool("read_resource", "uri", uri="string"), tool("list_directory", "uri", uri="string")]
    here = tmp_path.as_uri()
    text, call = "ENOENT: no such file or directory", ("--tool", "read_resource")
    result = steps(tmp_path, text, tools, *call, uri=f"{here}/Config.YAML")
    assert result == [("list_directory", {"uri": here}), ("read_resource", {"uri": f"{here}/config.yaml"})]


def test_another_tool_is_called_as_its_own_schema_says(tmp_path: Path) -> None:
    write = tool("write_file", "path content", path="string", content="string")
    result = steps(tmp_path, "Unknown tool: wrte_file", [write], "--tool", "wrte_file", path="a.json", content={})
    assert result == [("write_file", {"path": "a.json", "content": "{}"})]


def test_a_repair_that_leaves_another_argument_wrong_is_none(tmp_path: Path) -> None:
    search = tool("search", "path", path="string", count="integer", depth={"type": "integer", "maximum": 3})
    call = ("--tool", "search", "--tools", json.dumps([search]), *arguments(path="a", count="5", depth=7))
    answer = remedy(tmp_path, "count must be integer", *call)
    assert "fix_parameter_types" not in {one["strategy"] for one in answer["plans"]}
    assert "depth is more than 3" in answer["plans"][-1]["steps"][0]["action"]


@pytest.mark.parametrize(
    ("name", "risk"), [("delete_rows", "caution"), ("dropTable", "caution"), ("remove", "caution"), ("list", "safe")]
)
def test_what_removes_something_is_never_safe_to_call(tmp_path: Path, name: str, risk: str) -> None:
    for called in (name, f"{name}x"):  # with a wrong argument, and by a wrong name
        text = "limit must be integer" if called == name else f"Unknown tool: {called}"
        tools = json.dumps([tool(name, "limit", limit="integer")])
        answer = remedy(tmp_path, text, "--tool", called, "--tools", tools, *arguments(limit="5"))
        assert [one["risk"] for one in answer["plans"][:-1] if one["steps"][0]["tool"] == name] == [risk]
