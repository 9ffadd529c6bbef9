"""The store by itself: one writer per run, one owner per job, and nobody's secrets."""

import json
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from tests.fleet.conftest import psycopg
from tests.project import Project
from tests.waiting import wait_until

from unstuck.fleet.jobs import Enlisted, Job, Jobs, Offer
from unstuck.fleet.postgres import Link, address
from unstuck.fleet.postgres_journal import PostgresJournal
from unstuck.fleet.roster import Fleet
from unstuck.model.errors import BadUsage, CannotWrite, Owned, OwnershipLost
from unstuck.model.event import Noted, Request

Staff = Callable[..., Enlisted]


def execute(store: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(store, autocommit=True) as connection:
        done = connection.execute(statement.encode())
        return done.fetchall() if done.description else []


@pytest.fixture
def links(store: str) -> Iterator[list[Link]]:
    made: list[Link] = []
    yield made
    for link in made:
        link.close()


@pytest.fixture
def staff(store: str, links: list[Link]) -> Staff:
    """Return a function that enlists a worker."""

    def enlist(*agents: str, labels: tuple[str, ...] = (), slots: int = 9, lease: float = 60.0) -> Enlisted:
        links.append(Link(store, name="test"))
        worker = Enlisted(links[-1], Offer(project="p", agents=agents, labels=labels, slots=slots, lease=lease))
        worker.enlist()
        return worker

    return enlist


@pytest.fixture
def jobs(store: str, links: list[Link]) -> Jobs:
    """Return the queue of a supervisor that has claimed all runs of these tests."""
    links.append(Link(store, name="test"))
    links[-1].ask(
        lambda connection: connection.execute(
            "INSERT INTO unstuck.claims SELECT 'p', run, 1, '', '', run, 'mine', clock_timestamp(), clock_timestamp()"
            " FROM unnest(ARRAY['r', 'many', 'one', 'other']) AS run"
        )
    )
    return Jobs(links[-1])


def job(
    key: str, agent: str | None = "claude", *, run: str = "r", labels: tuple[str, ...] = (), priority: int = 0
) -> Job:
    kind = "session" if agent else "verify"
    return Job(
        key=key,
        project="p",
        run=run,
        task=key,
        kind=kind,
        body="{}",
        agent=agent,
        labels=labels,
        priority=priority,
        token="mine",
    )


def taken(worker: Enlisted) -> list[str]:
    return [found.task for found in iter(worker.take, None)]


def standing(jobs: Jobs, number: int) -> str:
    return jobs.look([number])[number].state


def test_a_supervisor_that_was_taken_over_cannot_append(store: str) -> None:
    old, new = PostgresJournal(store, "p", "here"), PostgresJournal(store, "p", "elsewhere")
    old.claim("r")
    old.append(Noted(text="mine"))
    with pytest.raises(Owned, match="is at work"):
        new.claim("r")
    execute(store, "UPDATE unstuck.claims SET started = 'another process of this pid'")
    before = new.claim("r")
    assert before is not None
    assert before.pid == os.getpid()
    for refused in (lambda: old.append(Noted(text="late")), old.beat):
        with pytest.raises(OwnershipLost, match="took run r over"):
            refused()
    new.append(Noted(text="ours"))
    assert [entry.event for entry in old.read("r")] == [Noted(text="mine"), Noted(text="ours")]
    old.release()
    new.beat()
    old.close()
    new.close()


def test_runs_of_one_project_have_an_owner_each_but_a_checkout_has_one_run(store: str) -> None:
    one, two, three = (PostgresJournal(store, "p", place) for place in ("here", "there", "here"))
    one.claim("r1")
    two.claim("r2")
    with pytest.raises(Owned):
        three.claim("r3")
    one.append(Noted(text="one"))
    two.append(Noted(text="two"))
    assert one.runs() == ("r1", "r2")
    assert (owner := three.owner("r2")) is not None
    assert owner.run == "r2"
    for journal in (one, two, three):
        journal.close()


def test_an_event_is_recorded_once_though_the_connection_breaks(store: str) -> None:
    journal = PostgresJournal(store, "p", "here")
    journal.claim("r")
    for number in range(3):
        journal.append(Noted(text=f"{number}"))
        execute(
            store, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'unstuck journal'"
        )
    journal.append(Noted(text="3"))
    assert [entry.event for entry in journal.read("r")] == [Noted(text=f"{number}") for number in range(4)]
    journal.close()


def test_events_and_requests_are_never_edited_and_anybody_may_ask(store: str) -> None:
    journal, other = PostgresJournal(store, "p", "here"), PostgresJournal(store, "p", "there")
    journal.claim("r")
    journal.append(Noted(text="fact"))
    request = Request(id=0, verb="skip", task="1.1", text="so", requester="ada", place="there", at=1.0)
    number = other.leave("r", request)
    assert [(found.id, found.verb, found.task, found.requester) for found in journal.requests(0)] == [
        (number, "skip", "1.1", "ada")
    ]
    for statement in ("UPDATE unstuck.events SET body = ''", "DELETE FROM unstuck.events", "TRUNCATE unstuck.requests"):
        with pytest.raises(psycopg.errors.RaiseException, match="never edited"):
            execute(store, statement)
    with pytest.raises(CannotWrite):
        other.leave("r", Request(id=0, verb="unreadable", requester="ada", place="there"))
    journal.close()
    other.close()


def test_a_password_is_taken_from_the_environment_and_is_shown_nowhere(
    store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, project: Project
) -> None:
    for text in ("postgresql://u:hunter2@h/d", "host=h password=hunter2", "postgresql://u:hunter2@[h/d"):
        with pytest.raises(BadUsage) as refused:
            address(text)
        assert "hunter2" not in f"{refused.value.message}{refused.value.hint}"
        said = project.ask("fleet", "--store", text)
        assert said.code == 64
        assert "hunter2" not in said.out + said.err
    monkeypatch.setenv("UNSTUCK_STORE_PASSWORD", "hunter2")
    fleet = Fleet(store)
    fleet.look()
    fleet.close()
    assert "UNSTUCK_STORE_PASSWORD" not in os.environ


def test_a_job_goes_to_a_worker_that_has_its_agent_and_its_labels(jobs: Jobs, staff: Staff) -> None:
    for key, agent, labels in (("a", "claude", ()), ("b", "codex", ()), ("c", "claude", ("gpu",)), ("d", None, ())):
        jobs.put(job(key, agent, labels=labels))
    assert taken(staff("gemini")) == ["d"]
    assert taken(staff("claude")) == ["a"]
    assert taken(staff("claude", "codex", labels=("gpu", "big"))) == ["b", "c"]


def test_finished_work_is_verified_first_then_priority_and_then_turns_decide(jobs: Jobs, staff: Staff) -> None:
    for number in range(3):
        jobs.put(job(f"many{number}", run="many"))
    jobs.put(job("one", run="one"))
    jobs.put(job("urgent", run="other", priority=5))
    jobs.put(job("check", None))
    assert taken(staff("claude")) == ["check", "urgent", "many0", "one", "many1", "many2"]


def test_a_limit_holds_for_all_agents_of_a_provider_and_can_be_lifted(store: str, jobs: Jobs, staff: Staff) -> None:
    fleet = Fleet(store)
    fleet.limit("anthropic", 2, ("claude", "aider"))
    for key, agent in (("a", "claude"), ("b", "aider"), ("c", "claude"), ("d", "codex")):
        jobs.put(job(key, agent))
    worker = staff("claude", "aider", "codex")
    assert taken(worker) == ["a", "b", "d"]
    fleet.limit("anthropic", 0, ())
    assert taken(worker) == ["c"]
    fleet.close()


def test_a_providers_limit_that_one_worker_met_holds_all_others_back(store: str, jobs: Jobs, staff: Staff) -> None:
    jobs.put(job("a"))
    unlucky, other = staff("claude", "codex"), staff("claude", "codex")
    met = unlucky.take()
    assert met is not None
    jobs.put(job("b"))
    jobs.put(job("c", "codex"))
    assert unlucky.report(met, "{}", hold=("claude", 3600.0, "rate_limited met by task a"))
    assert taken(other) == ["c"]
    fleet = Fleet(store)
    assert [(held.agent, held.why) for held in fleet.look().held] == [("claude", "rate_limited met by task a")]
    fleet.close()
    execute(store, "UPDATE unstuck.holds SET until = clock_timestamp()")
    assert taken(other) == ["b"]


def test_who_was_taken_for_dead_cannot_report_and_its_job_is_lost_once(store: str, jobs: Jobs, staff: Staff) -> None:
    number = jobs.put(job("a"))
    dead, other = staff("claude"), staff("claude")
    mine = dead.take()
    assert mine is not None
    jobs.bury()
    assert standing(jobs, number) == "running"
    execute(store, f"UPDATE unstuck.workers SET beat = beat - interval '1 hour' WHERE id = '{dead.id}'")
    execute(store, "UPDATE unstuck.workers SET lease = 0.001 WHERE beat < clock_timestamp() - interval '30 minutes'")
    jobs.bury()
    assert standing(jobs, number) == "lost"
    assert not dead.report(mine, "{}")
    assert dead.beat("ready", "") is None
    assert standing(jobs, number) == "lost"
    assert (pulse := other.beat("ready", "")) is not None
    assert not pulse.mine


def test_a_lease_is_a_lock_of_a_connection_and_a_beat_that_must_not_grow_old(
    store: str, jobs: Jobs, staff: Staff, links: list[Link]
) -> None:
    def living() -> set[object]:
        jobs.bury()
        return {row[0] for row in execute(store, "SELECT id FROM unstuck.workers")}

    silent, gone, over = (staff("claude") for _ in range(3))
    assert living() == {silent.id, gone.id, over.id}
    # Time counts from the start of the server at the earliest: half of a lease has passed for all of them.
    half = "2 * extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())"
    execute(store, f"UPDATE unstuck.workers SET beat = beat - interval '1 hour', lease = {half}")
    assert living() == {silent.id, gone.id, over.id}, "whoever holds its lock has its whole lease"
    links.pop(-2).close()
    wait_until(lambda: living() == {silent.id, over.id}, "the end of the one whose connection is gone")
    execute(store, f"UPDATE unstuck.workers SET lease = {half} / 4 WHERE id = '{over.id}'")
    assert living() == {silent.id}, "a lock without a beat is not enough"


def test_connections_notice_a_network_that_is_gone_on_both_sides(store: str, links: list[Link]) -> None:
    links.append(Link(store, name="test"))
    names = ("tcp_keepalives_idle", "tcp_keepalives_count", "lock_timeout", "idle_in_transaction_session_timeout")
    theirs = links[-1].ask(
        lambda connection: [connection.execute(f"SHOW {name}".encode()).fetchone() for name in names]
    )
    assert theirs == [("5",), ("3",), ("10s",), ("10s",)]

    def ours(connection: "psycopg.Connection[tuple[object, ...]]") -> list[int]:
        with socket.socket(fileno=os.dup(connection.fileno())) as side:
            wanted = (socket.TCP_KEEPIDLE, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
            return [
                side.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                *(side.getsockopt(socket.IPPROTO_TCP, option) for option in wanted),
            ]

    assert links[-1].ask(ours) == [1, 5, 3, 10_000]


def test_a_supervisor_that_was_taken_over_gives_nothing_out(store: str, jobs: Jobs, staff: Staff) -> None:
    execute(store, "UPDATE unstuck.claims SET token = 'another' WHERE run = 'r'")
    with pytest.raises(OwnershipLost, match="took run r over"):
        jobs.put(job("late"))
    assert taken(staff("claude")) == []


def test_what_one_worker_alone_must_do_is_for_anybody_once_it_is_gone(jobs: Jobs, staff: Staff) -> None:
    alone, other = staff("claude"), staff("claude")
    jobs.put(replace(job("probe"), only=alone.id))
    assert taken(other) == []
    alone.leave()
    assert taken(other) == ["probe"]


def test_a_job_whose_taking_was_never_answered_is_lost_and_not_at_work_for_ever(jobs: Jobs, staff: Staff) -> None:
    number = jobs.put(job("a"))
    worker = staff("claude")
    assert worker.take() is not None
    worker.lose([number])
    assert standing(jobs, number) == "lost"


def test_what_people_say_reaches_the_worker_that_has_the_job(jobs: Jobs, staff: Staff) -> None:
    number = jobs.put(job("a"))
    jobs.tell(number, ["before anybody has it"])
    worker = staff("claude")
    mine = worker.take()
    assert mine is not None
    worker.listen(mine, listens=True)
    assert jobs.look([number])[number].listens
    jobs.tell(number, ["first", "nul \0"])
    jobs.tell(number, ["second"])
    assert (pulse := worker.beat("ready", "")) is not None
    assert pulse.mine == {number: ("first", "nul ", "second")}


def test_requests_come_in_the_order_of_their_numbers(store: str) -> None:
    journals = [PostgresJournal(store, "p", f"{number}") for number in range(2)]
    request = Request(id=0, verb="skip", task="1.1", text="so", requester="ada", place="there", at=1.0)
    with psycopg.connect(store) as first:
        journals[0].leave("r", request)
        first.execute("SELECT pg_advisory_xact_lock(hashtext('p r'))")
        with ThreadPoolExecutor() as pool:
            late = pool.submit(journals[1].leave, "r", request)
            first.execute(
                "INSERT INTO unstuck.requests (project, run, at, verb, text, shown, who, place, inside)"
                " VALUES ('p', 'r', 1, 'stop', '', '', 'ada', 'there', '')"
            )
            first.commit()
            number = late.result()
    rows = execute(store, "SELECT max(id) FROM unstuck.requests")
    assert rows == [(number,)], "who asks later has the greater number, however long the other one takes"
    for journal in journals:
        journal.close()


def test_a_job_that_is_put_twice_is_there_once_and_one_that_nobody_has_can_be_taken_back(
    jobs: Jobs, staff: Staff
) -> None:
    number = jobs.put(job("a"))
    assert jobs.put(job("a")) == number == jobs.find("a")
    assert jobs.why_queued(number)[0] == "waits for a worker with claude"
    jobs.ask_to_stop(number)
    assert taken(staff("claude")) == []
    assert standing(jobs, number) == "lost"


def test_a_running_job_that_is_to_end_is_told_to_its_worker_at_its_next_beat(jobs: Jobs, staff: Staff) -> None:
    number = jobs.put(job("a"))
    worker = staff("claude")
    assert worker.take() is not None
    jobs.ask_to_stop(number)
    pulse = worker.beat("ready", "")
    assert pulse is not None
    assert pulse.stop == pulse.mine.keys() == {number}
    jobs.give_up(number)
    assert (later := worker.beat("ready", "")) is not None
    assert not later.mine


def test_a_worker_hears_of_work_without_asking(store: str, jobs: Jobs, staff: Staff, links: list[Link]) -> None:
    worker = staff("claude")
    link = links[-1]
    jobs.put(job("a"))
    assert link.wait(30.0) == {"work"}
    assert taken(worker) == ["a"]


def test_fleet_shows_workers_what_they_do_and_what_waits(
    store: str, jobs: Jobs, staff: Staff, project: Project
) -> None:
    assert "no worker" in project.ask("fleet", "--store", store).out
    worker = staff("claude", labels=("gpu",), slots=2)
    jobs.put(job("a"))
    jobs.put(job("b", "codex", priority=3))
    mine = worker.take()
    assert mine is not None
    worker.say(mine, "editing \x1b[31mcart.py")
    text = project.ask("fleet", "--store", store, "--limit", "claude=4").out
    for part in (worker.id, "1/2 slots", "claude, +gpu", "session of a in r by claude", "editing cart.py"):
        assert part in text
    assert "waiting: 1 for codex in r, priority 3" in text
    assert "limit: claude at most 4" in text
    assert "\x1b" not in text
    seen = project.ask("fleet", "--store", store, "--json").json
    schema = json.loads(project.ask("docs", "--schema", "fleet").out)
    assert list(Draft202012Validator(schema).iter_errors(seen)) == []
    assert [(one["id"], one["slots"], one["jobs"][0]["task"]) for one in seen["workers"]] == [(worker.id, 2, "a")]
