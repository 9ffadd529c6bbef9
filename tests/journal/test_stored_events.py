"""The JSON of events: keys that older journals have stay, and new ones appear only when they are used."""

import json

from unstuck.model.action import Accept
from unstuck.model.event import (
    Acted,
    AttemptStarted,
    Event,
    Operated,
    Request,
    SessionEnded,
    SessionStarted,
    Verified,
    decode,
    encode,
)
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.verdict import CheckEvidence, CheckResult, Verdict

DONE = Ended(ending="exited", exit_code=0)
EVIDENCE = CheckEvidence(test="test_total", location="tests/test_cart.py:12", expected="3", got="4")


def stored(event: Event) -> dict[str, object]:
    text = encode(event)
    assert decode(text, seq=1) == event
    content: dict[str, object] = json.loads(text)
    return content


def verified(*, evidence: CheckEvidence | None) -> Verified:
    result = CheckResult(
        command="pytest",
        kind="test",
        ended=DONE,
        excused_because="red before",
        not_meaningful_because="nothing ran",
        external_service_down=True,
        evidence=evidence,
    )
    verdict = Verdict(status="pass", tree="t", base="b", results=(result,), evidence=evidence)
    return Verified(task="1", verdict=verdict)


def test_fields_that_no_old_event_has_are_stored_only_when_they_are_used() -> None:
    assert "entry" not in stored(AttemptStarted(task="1", attempt=1, agent="a", base="b", slot=0))
    assert "entry" not in stored(SessionStarted(task="1", session=1))
    assert "entry" not in stored(SessionEnded(task="1", outcome=Outcome(ended=DONE)))
    assert stored(SessionStarted(task="1", session=1, entry=2))["entry"] == 2
    assert "doubt" not in stored(Acted(task="1", action=Accept()))
    assert stored(Acted(task="1", action=Accept(), doubt="a test was changed"))["doubt"] == "a test was changed"
    assert "evidence" not in encode(verified(evidence=None))
    assert encode(verified(evidence=EVIDENCE)).count('"test":"test_total"') == 2


def test_renamed_fields_keep_their_stored_names() -> None:
    text = encode(verified(evidence=None))
    assert '"although":"red before","idle":"nothing ran","outside":true' in text
    request = stored(Operated(request=Request(id=1, verb="accept", shown_tree="abc", requester="ada")))["request"]
    assert isinstance(request, dict)
    assert (request["shown"], request["who"]) == ("abc", "ada")
