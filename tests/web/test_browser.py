"""The board in a real browser: watched live, answered, left and come back to, and given everything hostile."""

import os
import re
from typing import TYPE_CHECKING, Any

import pytest
from tests.web.boards import Served, browser, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page
    from tests.project import Project

KEY = "a-key-of-twenty-four-letters"
PATIENCE = 45_000
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def chromium() -> "Iterator[Browser]":
    with browser() as opened:
        yield opened


@pytest.fixture
def context(chromium: "Browser") -> "Iterator[BrowserContext]":
    opened = chromium.new_context()
    opened.set_default_timeout(PATIENCE)
    yield opened
    opened.close()


def opened(context: "BrowserContext", board: Served) -> "Page":
    """Open the address that was printed; whatever the page's console says against it fails the test."""
    page = context.new_page()
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto(board.address)
    page.get_by_role("heading", level=1).wait_for()
    assert "token" not in page.url
    return page


def test_a_run_is_watched_live_and_a_question_answered_in_one_tab_lands_in_two(
    project: "Project", context: "BrowserContext", tmp_path: "Path"
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    project.plan(
        ("1.1 [P]", "Make a", "test -f a.txt"),
        ("1.2 [P]", "Make b", "grep -q blue b.txt"),
        ("1.3 [P]", "Make c", "test -f c.txt"),
    )
    project.script(
        _1_1=[[{"write": "a.txt"}]],
        _1_2=[
            [{"write": "b.txt", "text": "grey\n"}, {"print": "Which colour should b have, blue or green?"}],
            [{"write": "b.txt", "text": "blue\n"}],
        ],
        _1_3=[[{"print": "thinking"}, {"run": f"cat {gate}"}, {"write": "c.txt"}]],
    )
    with project.start("run", "tasks.md", "--agent", project.agent, "--quiet") as run:
        try:
            with served(project.root) as board:
                page, other = opened(context, board), opened(context, board)
                question = page.get_by_role("article", name="Question about task 1.2")
                question.get_by_text("Which colour should b have, blue or green?").first.wait_for()
                page.get_by_role("status").get_by_text("live").wait_for()
                page.reload()
                question.get_by_label("Answer, hint or reason for task 1.2").fill("blue, as the brand book says")
                question.get_by_role("button", name="Answer").click()
                page.get_by_text("Left for the running supervisor.").wait_for()
                for tab in (page, other):
                    tab.get_by_role("list", name="Landed tasks").get_by_text("Make b").wait_for()
                gate.write_text("go")
                for tab in (page, other):
                    tab.get_by_role("heading", name="All 3 tasks are done.").wait_for()
            assert run.wait(60) == 0
        finally:
            run.kill()
            run.communicate()
    assert "a-key" not in project.ask("log").out
    assert "blue, as the brand book says" in project.ask("log").out


def test_a_page_comes_back_to_a_board_that_was_started_anew(project: "Project", context: "BrowserContext") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "test -f b.txt"))
    project.script(_1_1=[[]])
    assert project.run("--max-attempts", "1").code == 3
    with served(project.root, "--port", "0", "--token", KEY) as board:
        page = opened(context, board)
        port = str(board.port)
    page.get_by_role("status").get_by_text("reconnecting…").wait_for()
    assert project.unstuck("skip", "1.1").code == 0
    with served(project.root, "--port", port, "--token", KEY):
        page.get_by_text("asked to skip 1.1").wait_for()
        page.get_by_role("button", name="Undo").click()
        page.get_by_text(re.compile("asked to undo .*done")).wait_for()
    assert project.status()["1.1"] == "pending"


def test_two_thousand_tasks_scroll_as_ten_do(project: "Project", context: "BrowserContext") -> None:
    project.plan(*((f"1.{number}", f"Task number {number}", "test -f b.txt") for number in range(1, 2001)))
    project.script(_1_1=[[{"write": "b.txt"}]], _1_2=[[{"delete": "b.txt"}]])
    assert project.run("--max-attempts", "1", "--on-stuck", "halt").code == 3
    with served(project.root) as board:
        page = opened(context, board)
        page.keyboard.press("3")
        tasks = page.get_by_role("list", name="Tasks")
        tasks.get_by_text("Task number 7", exact=True).wait_for()
        assert page.locator("[data-task]").count() < 100
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        tasks.get_by_text("Task number 2000", exact=True).wait_for()
        assert page.locator("[data-task]").count() < 100
        page.keyboard.press("/")
        page.locator("input:focus").wait_for()
        page.keyboard.type("number 1234")
        tasks.get_by_text("Task number 1234", exact=True).wait_for()
        assert page.locator("[data-task]").count() == 1
        page.keyboard.press("Escape")
        page.keyboard.press("2")
        page.locator(".node").first.wait_for()
        assert page.locator(".node").count() < 200
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.get_by_role("link", name=re.compile(r"^Task 1\.2000,")).click()
        page.get_by_role("heading", name="1.2000 Task number 2000").wait_for()


HOSTILE = (
    "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>\n"
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202etxet desrever\u202c\n"
    "</script><script>window.pwned = 1</script> {{constructor}} javascript:window.pwned=1\n"
)


def test_whatever_an_agent_prints_or_names_stays_text(
    project: "Project", context: "BrowserContext", tmp_path: "Path"
) -> None:
    name = "<img src=x onerror=window.pwned=1>.txt"
    project.plan(("1.1", "Make <b>a</b> <img src=x onerror=window.pwned=1>", "cat shout.txt; false"))
    words = f"{HOSTILE}APPROACH: <script>window.pwned = 1</script>\nIs <script>window.pwned = 1</script> right?"
    project.script(
        _1_1=[
            [
                {"run": "python3 -c \"print('<i> and ' * 600_000); open('long.txt', 'w').write('B' * 5_000_000)\""},
                {"write": "shout.txt", "text": HOSTILE},
                {"write": name, "text": HOSTILE},
                {"print": words},
            ]
        ]
    )
    assert project.run("--max-attempts", "1").code == 3
    kept = tmp_path / "kept.html"
    assert project.ask("report", "--html", str(kept)).code == 0
    assert kept.stat().st_size < 1_000_000
    with served(project.root) as board:
        page = opened(context, board)
        for place in (f"{board.origin}/", kept.as_uri()):
            page.goto(f"{place}#/task/1.1")
            page.get_by_role("heading", name="Make <b>a</b> <img src=x").wait_for()
            page.locator(".checks .output").first.wait_for()
            shown = str(page.evaluate("document.body.innerText"))
            for tab in ("Changes", "Brief", "Last words"):
                page.get_by_role("button", name=tab).click()
                page.locator(".tabs .output, .diff").first.wait_for()
                shown += page.locator(".tabs").inner_text()
            assert "<script>window.pwned = 1</script>" in page.locator(".tabs .output").inner_text()
            assert not re.search("[\x1b\u202a-\u202e\u2066-\u2069]", shown)
            assert page.evaluate("window.pwned") is None
            assert page.locator("main img, main script").count() == 0
            for view in ("morning", "plan", "tasks", "timeline", "cost", "experience", "log"):
                page.goto(f"{place}#/{view}")
                page.get_by_role("heading", level=1).wait_for()
                assert page.evaluate("window.pwned") is None


def test_the_kept_page_works_alone_with_the_keyboard_and_on_a_phone(
    half_done: "Project", chromium: "Browser", tmp_path: "Path"
) -> None:
    path = tmp_path / "kept.html"
    assert half_done.ask("report", "--html", str(path)).code == 0
    context = chromium.new_context(viewport={"width": 390, "height": 844}, offline=True, color_scheme="dark")
    page, asked = context.new_page(), list[Any]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto(path.as_uri())
    page.get_by_role("heading", name="1 of 2 tasks landed. One waits for you.").wait_for()
    seen = []
    for number in range(1, 8):
        page.keyboard.press(str(number))
        page.wait_for_function("n => document.querySelectorAll('.rail li a')[n - 1].ariaCurrent === 'page'", arg=number)
        seen.append(page.get_by_role("heading", level=1).inner_text())
        assert page.evaluate(TOO_WIDE) == 0, f"view {number} is wider than a phone"
    assert seen[1:] == ["Plan", "Tasks", "Timeline", "Cost", "Experience", "Log"]
    page.keyboard.press("j")
    page.get_by_role("heading", name="1.1 Make a").wait_for()
    page.keyboard.press("j")
    page.get_by_role("heading", name="1.2 Make b").wait_for()
    page.get_by_role("button", name="Changes").click()
    page.get_by_role("table", name="Changes of b.txt").get_by_text("+wrong").wait_for()
    assert page.evaluate(TOO_WIDE) == 0
    before = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.keyboard.press("d")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != before
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    assert page.locator("a:not([href]), button:not([type]):not(dialog button), input:not([aria-label])").count() == 0
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    context.close()
