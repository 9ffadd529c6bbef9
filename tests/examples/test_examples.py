"""The examples, each with the real library and a scripted model: wrong first, right after reading the hints."""

import importlib.util
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = [pytest.mark.examples, pytest.mark.filterwarnings("ignore")]
EXAMPLES = Path(__file__).parents[2] / "examples"
PROMPT, CHECK = (
    "Write a greeting into greeting.txt.",
    "grep hello greeting.txt || { echo 'AssertionError: no hello'; exit 1; }",
)
WRONG, RIGHT = "goodbye\n", "hello\n"


def example(name: str, library: str = "") -> ModuleType:
    """Load an example; without its library the test is skipped."""
    if library and importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed: run `make examples`")
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hinted(prompts: list[str]) -> bool:
    """Whether the second attempt, and not the first, was told what had been tried."""
    return ["Previous attempts: 1" in prompt for prompt in prompts] == [False, True]


def test_a_plain_loop_tries_again_with_hints_and_asks_in_the_end(tmp_path: Path) -> None:
    prompts: list[str] = []
    texts = iter([WRONG, RIGHT])

    def agent(prompt: str) -> str:
        prompts.append(prompt)
        (tmp_path / "greeting.txt").write_text(next(texts))
        return f"approach {len(prompts)}: {'abc'[len(prompts)] * 5}"

    module = example("plain_loop")
    assert module.solve("1.1", PROMPT, CHECK, agent, tmp_path).action == "accept"
    assert hinted(prompts)
    stubborn = module.solve("1.2", PROMPT, "false", lambda _: "the same way again", tmp_path)
    assert stubborn.action == "escalate"
    assert "the same way again" in (tmp_path / "report.md").read_text()


def test_a_langgraph_graph_goes_back_until_the_check_passes(tmp_path: Path) -> None:
    module = example("langgraph_graph", "langgraph")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel  # noqa: PLC0415  # not everywhere
    from langchain_core.messages import AIMessage  # noqa: PLC0415  # as above

    prompts: list[str] = []

    class Scripted(GenericFakeChatModel):  # type: ignore[misc,unused-ignore]  # untyped where it is not installed
        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            prompts.append(str(messages[-1].content))
            return super()._generate(messages, *args, **kwargs)

    model = Scripted(messages=iter([AIMessage(content=WRONG), AIMessage(content=RIGHT)]))
    state = module.graph(model, "1.1", PROMPT, CHECK, tmp_path).invoke({})
    assert state["advice"].action == "accept"
    assert hinted(prompts)


def test_an_agent_of_the_openai_sdk_is_told_ways_out_and_hints(tmp_path: Path) -> None:
    module = example("openai_agents", "agents")
    from openai.types.responses import (  # noqa: PLC0415  # as above
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    from agents import Model, ModelResponse, Usage  # noqa: PLC0415  # not everywhere

    class Scripted(Model):  # type: ignore[misc,unused-ignore]  # as above
        def __init__(self) -> None:
            self.heard: list[str] = []
            self.turns = [
                call("cat notes.txt"), call("echo goodbye > greeting.txt"), say("wrote goodbye"),
                call("echo hello > greeting.txt"), say("wrote hello"),
            ]  # fmt: skip

        async def get_response(self, **asked: Any) -> Any:
            self.heard.append(str(asked["input"]))
            return ModelResponse(output=[self.turns.pop(0)], usage=Usage(), response_id=None)

        def stream_response(self, **_: Any) -> AsyncIterator[Any]:
            raise NotImplementedError

    def call(command: str) -> Any:
        text = f'{{"command": "{command}"}}'
        return ResponseFunctionToolCall(arguments=text, call_id=command, name="run", type="function_call", id=command)

    def say(text: str) -> Any:
        content = [ResponseOutputText(annotations=[], text=text, type="output_text")]
        return ResponseOutputMessage(id=text, content=content, role="assistant", status="completed", type="message")

    model = Scripted()
    assert module.solve(model, "1.1", PROMPT, CHECK, tmp_path).action == "accept"
    assert "Way out: " in model.heard[1]
    assert hinted([model.heard[0], model.heard[3]])


def test_a_pydantic_ai_agent_tries_again_with_hints(tmp_path: Path) -> None:
    module = example("pydantic_ai_agent", "pydantic_ai")
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart  # noqa: PLC0415  # not everywhere
    from pydantic_ai.models.function import FunctionModel  # noqa: PLC0415  # as above

    heard: list[str] = []
    turns = [
        ToolCallPart("write_file", {"path": "greeting.txt", "text": WRONG}), TextPart("wrote goodbye"),
        ToolCallPart("write_file", {"path": "greeting.txt", "text": RIGHT}), TextPart("wrote hello"),
    ]  # fmt: skip

    def model(messages: Any, _info: Any) -> Any:
        heard.append(str(messages))
        return ModelResponse(parts=[turns.pop(0)])

    assert module.solve(FunctionModel(model), "1.1", PROMPT, CHECK, tmp_path).action == "accept"
    assert hinted([heard[0], heard[2]])


def test_mini_swe_agent_reads_ways_out_in_the_output(tmp_path: Path) -> None:
    module = example("mini_swe_agent", "minisweagent")
    from minisweagent.agents.default import DefaultAgent  # noqa: PLC0415  # not everywhere
    from minisweagent.models.test_models import DeterministicModel, make_output  # noqa: PLC0415  # as above

    (tmp_path / "config.yaml").write_text("port: 1")
    commands = ["cat config.yml", "cat config.yaml", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo done"]
    model = DeterministicModel(outputs=[make_output("next", [{"command": one}]) for one in commands])
    environment = module.RecoveringEnvironment(cwd=str(tmp_path))
    agent = DefaultAgent(model, environment, system_template="You are an agent.", instance_template="{{task}}")
    assert agent.run("Read the configuration.")["exit_status"] == "Submitted"
    observed = [str(message["content"]) for message in agent.messages if "<returncode>" in str(message.get("content"))]
    assert "[way out: verify_path]" in observed[0]
    assert "way out" not in observed[1]
