"""LangGraph: a node that works, a node that checks, and an edge that follows the advice."""

import subprocess
from pathlib import Path
from typing import Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, START, StateGraph

from unstuck import Advice, Recovery


class State(TypedDict, total=False):
    answer: str
    advice: Advice


def graph(model: BaseChatModel, task: str, prompt: str, check: str, folder: Path) -> Any:
    """Return a graph whose model writes `greeting.txt` until the check passes or a person is needed."""
    recovery = Recovery()

    def work(_state: State) -> State:
        answer = model.invoke(f"{prompt}\n\n{recovery.hints(task)}".strip())
        (folder / "greeting.txt").write_text(str(answer.content), encoding="utf-8")
        return {"answer": str(answer.content)}

    def judge(state: State) -> State:
        attempt = recovery.attempt(task, f"write {state['answer'].strip()}")
        done = subprocess.run(["bash", "-c", check], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return {"advice": attempt.passed()}
        return {"advice": attempt.failed(done.stdout, stderr=done.stderr, exit_code=done.returncode, command=check)}

    def onwards(state: State) -> str:
        return "work" if state["advice"].goes_on else END

    made = StateGraph(State)
    made.add_node("work", work)
    made.add_node("judge", judge)
    made.add_edge(START, "work")
    made.add_edge("work", "judge")
    made.add_conditional_edges("judge", onwards, ["work", END])
    return made.compile()
