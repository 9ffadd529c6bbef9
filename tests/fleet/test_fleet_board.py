"""The workers of a fleet in the board, in a real browser, at a wide and a narrow window."""

import os
import signal
from typing import TYPE_CHECKING

from tests.fleet.conftest import git
from tests.waiting import wait_until
from tests.web.boards import browser, served

from unstuck.fleet.roster import Fleet

if TYPE_CHECKING:
    from tests.fleet.conftest import Town

PATIENCE = 60_000
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_the_board_shows_what_each_worker_does_and_who_fell_silent(town: "Town") -> None:
    toml = town.root / "unstuck.toml"
    toml.write_text(toml.read_text().replace("parallel = 2", "parallel = 1"))
    git(town.root, "commit", "--quiet", "-am", "One at a time")
    git(town.root, "push", "--quiet", str(town.remote), "HEAD")
    at_work = town.worker("--label", "gpu", HOLD_AT="agent")
    fleet = Fleet(town.url)
    fleet.limit("anthropic", 6, ("claude", "aider"))
    fleet.close()
    run = town.supervisor()
    wait_until((town.met / "agent").exists, "a session at work")
    with browser() as opened, served(town.root) as board:
        page = opened.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(PATIENCE)
        page.goto(board.address)
        page.get_by_role("link", name="Workers").click()
        page.get_by_role("heading", name="Workers", level=1).wait_for()
        page.get_by_text("session of 1.1 by play").wait_for()
        page.get_by_text("1 of 1 slots").wait_for()
        page.get_by_text("play, +gpu").wait_for()
        page.get_by_text("anthropic: 6 at most (claude, aider)").wait_for()
        os.kill(at_work.pid, signal.SIGSTOP)
        page.get_by_text("silent for").or_(page.get_by_text("There is no worker.")).first.wait_for()
        os.kill(at_work.pid, signal.SIGCONT)
        page.set_viewport_size({"width": 360, "height": 740})
        page.get_by_text("heard of").wait_for()
        assert page.evaluate(TOO_WIDE) == 0, "wider than a phone"
        (town.met / "free").touch()
        assert town.ended(run) == 0, town.said()
        page.get_by_text("0 of 1 slots").wait_for()
    assert town.sound() == []
