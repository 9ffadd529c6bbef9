"""The board as its server gives it: who may ask, what is told, and that nothing else can be had from it."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import unescape
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from tests.web.boards import Served, served
from tests.web.journals import write_journal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.project import Project


@pytest.fixture(scope="module")
def board(half_done: "Project") -> "Iterator[Served]":
    with served(half_done.root) as opened:
        yield opened


def test_strangers_are_refused_and_say_so_for_the_right_reason(board: Served) -> None:
    cookie, ours = board.cookie(), f"127.0.0.1:{board.port}"
    ask = {"run": "", "verb": "stop"}
    post = {"cookie": cookie, "content_type": "application/json", "origin": board.origin}
    told = {
        "no key": board.ask("/"),
        "a wrong key": board.ask("/?token=guessed"),
        "a key that is empty": board.ask("/?token="),
        "a wrong cookie": board.ask("/api/runs", cookie=f"unstuck-{board.port}=guessed"),
        "the bundle without a key": board.ask("/ui.js"),
        "a name that was bound to our address": board.ask("/api/runs", host=f"evil.example:{board.port}", cookie=cookie),
        "another port": board.ask("/api/runs", host="127.0.0.1:1", cookie=cookie),
        "a page of somebody else's": board.ask("/api/runs", origin="http://evil.example", cookie=cookie),
        "a frame of somebody else's": board.ask("/api/runs", sec_fetch_site="cross-site", cookie=cookie),
        "a form of somebody else's": board.ask("/api/ask", method="POST", body=ask, cookie=cookie, origin="null"),
        "a request from nowhere": board.ask("/api/ask", method="POST", body=ask, cookie=cookie, content_type="application/json"),
        "a request without a key": board.ask("/api/ask", method="POST", body=ask, origin=board.origin),
        "a form": board.ask("/api/ask", method="POST", body=ask, cookie=cookie, origin=board.origin, content_type="text/plain"),
        "no such request": board.ask("/api/ask", method="POST", body={**ask, "verb": "rollback"}, **post),
        "a name, not an address": board.ask("/api/runs", host=f"localhost:{board.port}", cookie=cookie),
        "ours": board.ask("/api/runs", host=ours, cookie=cookie),
    }  # fmt: skip
    assert {who: answer.status for who, answer in told.items()} == {
        "no key": 401,
        "a wrong key": 401,
        "a key that is empty": 401,
        "a wrong cookie": 401,
        "the bundle without a key": 401,
        "a name that was bound to our address": 403,
        "another port": 403,
        "a page of somebody else's": 403,
        "a frame of somebody else's": 403,
        "a form of somebody else's": 403,
        "a request from nowhere": 403,
        "a request without a key": 401,
        "a form": 400,
        "no such request": 400,
        "a name, not an address": 200,
        "ours": 200,
    }


def test_the_browser_is_told_to_run_nothing_but_the_bundle(board: Served) -> None:
    entry = board.ask(board.address.partition(str(board.port))[2])
    assert re.search(r"HttpOnly; Path=/; SameSite=strict", entry.headers["set-cookie"])
    page = board.ask("/", cookie=board.cookie())
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?! src=\"/ui\.js\" defer></script>)|style=|\son\w+=", page.text)
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["cache-control"] == "no-store"


def test_nothing_that_a_page_names_is_read_as_a_path(board: Served) -> None:
    cookie = board.cookie()
    asked = [
        "/api/story?task=../../../../etc/passwd",
        "/api/brief?task=1.1&attempt=../1",
        "/api/diff?task=1.1&attempt=99999999999",
        "/api/diff?task=1.1&attempt=7",
        "/api/diff?task=1.1&attempt=1&since=-1",
    ]
    assert {path: board.ask(path, cookie=cookie).status for path in asked} == dict.fromkeys(asked, 400)
    assert board.ask("/../../etc/passwd", cookie=cookie).status == 404
    assert board.ask("/ui/..%2f..%2fsecret", cookie=cookie).status == 404


def test_an_unknown_run_is_answered_with_404_at_every_address_that_names_one(board: Served) -> None:
    page = {"cookie": board.cookie(), "origin": board.origin, "content_type": "application/json"}
    paths = ("/api/events?", "/api/story?task=1.1&", "/api/diff?task=1.1&attempt=1&", "/api/brief?task=1.1&")
    answers = [board.ask(f"{path}run={run}", **page) for path in paths for run in ("nowhere", "../journal", "%ff")]
    answers.append(
        board.ask("/api/ask", method="POST", body={"run": "nowhere", "task": "1.1", "verb": "retry"}, **page)
    )
    assert {answer.status for answer in answers} == {404}
    assert all(answer.json["error"].startswith("There is no run") for answer in answers)


def test_a_story_holds_checks_words_brief_and_diff(board: Served) -> None:
    cookie = board.cookie()
    story = board.ask("/api/story?task=1.2", cookie=cookie).json
    steps = {step["what"]: step for step in story["attempts"][0]["steps"]}
    assert list(steps) == ["session", "ended", "verdict", "failure", "decision", "acted"]
    assert steps["verdict"]["checks"][0]["command"] == "grep -q right b.txt"
    assert steps["failure"]["kind"] == "check_failed"
    assert steps["decision"]["action"] == "escalate"
    assert steps["decision"]["rung"]
    assert story["question"]
    assert "Make b" in board.ask("/api/brief?task=1.2&attempt=1", cookie=cookie).json["brief"]
    assert "+wrong" in board.ask("/api/diff?task=1.2&attempt=1", cookie=cookie).json["diff"]


def test_the_stream_is_numbered_by_the_journal_and_replays_what_was_missed(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "test -f b.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]], _1_2=[[]])
    assert project.run("--max-attempts", "1").code == 3
    with served(project.root) as board:
        first = board.events()
        kind, number, whole = next(first)
        assert (kind, int(number)) == ("view", whole["seq"])
        assert {row["id"]: row["status"] for row in whole["tasks"]} == {"1.1": "complete", "1.2": "stuck"}
        assert project.unstuck("skip", "1.2", "--because", "not now").code == 0
        kind, later, patch = next(first)
        assert (kind, [(row["id"], row["status"]) for row in patch["tasks"]]) == ("patch", [("1.2", "skipped")])
        assert int(later) > int(number)
        ((kind, again, missed),) = islice(board.events(last_event_id=number), 1)
        assert (kind, again) == ("patch", later), "who comes back is told what is new, and no more"
        assert [row["id"] for row in missed["tasks"] if row["status"] == "skipped"] == ["1.2"]
        ((kind, _, fresh),) = islice(board.events(last_event_id="999999"), 1)
        assert (kind, len(fresh["tasks"])) == ("view", 2), "who saw another journal gets all of this one"


def test_an_answer_goes_the_way_of_the_command(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[]])
    assert project.run("--max-attempts", "1").code == 3
    with served(project.root) as board:
        page = {"cookie": board.cookie(), "origin": board.origin, "content_type": "application/json"}
        run = board.ask("/api/runs", **page).json["latest"]

        def ask(**wanted: object) -> tuple[int, str]:
            answer = board.ask("/api/ask", method="POST", body={"run": run, "task": "1.1", **wanted}, **page)
            return answer.status, answer.json.get("error", answer.json.get("next"))

        assert ask(verb="answer", text=" ")[0] == 400
        assert ask(verb="answer", text="x" * 20_000)[0] == 400
        assert ask(verb="accept", text="it is right", shown="0" * 40)[1].startswith("The work of task 1.1 is another")
        assert ask(verb="answer", task="9.9", text="yes")[0] == 400
        assert ask(verb="answer", text=["yes"])[0] == 400
        assert ask(verb="answer", text="write it down") == (200, "unstuck resume")
    project.script(_1_1=[[{"write": "a.txt"}]])
    assert project.unstuck("resume").code == 0
    assert "asked to answer 1.1 ('write it down'): done" in project.ask("log").out
    assert "write it down" in project.ask("show", "1.1", "--brief").out


def test_beyond_this_machine_it_is_served_only_with_a_token(project: "Project") -> None:
    told = [project.ask("ui", "--host", "0.0.0.0"), project.ask("ui", "--host", "0.0.0.0", "--token", "short")]
    assert [one.code for one in told] == [64, 64]
    assert "no token was given" in told[0].err
    assert "at least" in told[1].err


def test_a_board_before_the_first_run_waits_for_it_and_knows_all_that_follow(project: "Project") -> None:
    with served(project.root) as board:
        cookie = board.cookie()
        assert board.ask("/api/runs", cookie=cookie).json == {"runs": [], "latest": ""}
        assert board.ask("/api/events", cookie=cookie).status == 400
        project.plan(("1.1", "Make a", "test -f a.txt"))
        project.script(_1_1=[[{"write": "a.txt"}]])
        assert project.run().code == 0
        ((_, _, first),) = islice(board.events(), 1)
        assert [row["status"] for row in first["tasks"]] == ["complete"]
        project.plan(("1.1", "Make b", ""), ("1.2", "Make c", ""), name="more.md")
        assert project.run("--max-attempts", "1", plan="more.md").code == 3
        told = board.ask("/api/runs", cookie=cookie).json
        assert [(run["plan"], run["tasks"]) for run in told["runs"]] == [("more.md", 2), ("tasks.md", 1)]
        ((_, _, latest),) = islice(board.events(), 1)
        ((_, _, named),) = islice(board.events(first["run"]["id"]), 1)
        assert (latest["run"]["id"], named) == (told["latest"], first)


def test_the_kept_page_holds_the_same_run_and_lets_nothing_else_in(half_done: "Project", board: Served) -> None:
    path = half_done.root.parent / "kept.html"
    assert half_done.ask("report", "--html", str(path)).code == 0
    text = path.read_text(encoding="utf-8")
    held = re.search(r'<script type="application/json" id="kept">(.*?)</script>', text)
    assert held is not None
    kept = json.loads(held[1])
    ((_, _, live),) = islice(board.events(), 1)
    assert kept["view"] == live, "one object of a run, for both"
    assert kept["stories"]["1.2"]["attempts"][0]["steps"]
    assert "+wrong" in kept["diffs"]["1.2"]["1"]
    policy = unescape(re.findall(r'Content-Security-Policy" content="([^"]+)', text)[0])
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)[0]
    assert f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", text), "it asks nobody for anything"
    assert half_done.ask("report", "--html", str(path / "nowhere.html")).code == 64
    assert half_done.ask("report", "--open").code == 64


def test_a_hundred_talkative_tasks_are_kept_in_less_than_a_megabyte(project: "Project") -> None:
    write_journal(
        project, 100, 2, "".join(f"{number} <b>words</b> \x1b[31mand & more\x1b[0m\n" for number in range(300))
    )
    path = project.root.parent / "kept.html"
    told = project.ask("report", "--html", str(path))
    assert told.code == 0, told
    assert path.stat().st_size < 1_000_000
    held = re.search(r'id="kept">(.*?)</script>', path.read_text(encoding="utf-8"))
    assert held is not None
    kept = json.loads(held[1])
    assert len(kept["stories"]) == 100
    assert all(len(story["attempts"]) == 2 for story in kept["stories"].values())
    assert "characters left out" in kept["stories"]["1.7"]["attempts"][0]["steps"][1]["words"]
