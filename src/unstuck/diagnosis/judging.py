"""Say what went wrong with one command: facts first, then what anchored rules prove. Pure.

Every piece of evidence is a vote for a kind with a weight; the heaviest decides, and among equals the first (or, for
summaries and final exceptions, the last). What the command is for names findings that do not name themselves.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from unstuck.diagnosis.evidence import Evidence, Hit, Line, plain
from unstuck.diagnosis.output.tool_output import Reading, read
from unstuck.diagnosis.rule import Rule
from unstuck.model.failure import KINDS, Judged, Kind
from unstuck.model.text import one_line
from unstuck.toolchain.command_roles import Role, is_answer, role
from unstuck.toolchain.shell import parts, programs

MESSAGE_CHARS = 300
NOISE = 20
"""What a hit is worth at most on a line that is a warning, a log entry or quoted code."""
TEXT_ALONE = 45
"""Without an exit code a text must prove at least this much to be called a failure."""
ROLE_WEIGHT = 42
GUESSED = 41
"""What a word alone is worth: more than nothing, too little to be told beside something else."""
FOUND, ERROR_FOUND, OWN_WORDS, SURE, VERDICT = 44, 55, 80, 95, 25
"""The least weight of a place in a file, of an error there, of a tool's own words; what nothing outweighs; what a test's verdict gains."""
PLACES, TESTS, OTHERS, NAMED_WHOLE = 20, 50, 3, 1 << 16

BY_ROLE: Mapping[Role, Kind] = {
    "test": Kind.TEST_FAILED,
    "lint": Kind.LINT_FAILED,
    "types": Kind.TYPES_FAILED,
    "format": Kind.FORMAT_FAILED,
    "build": Kind.BUILD_BROKEN,
}
FINDING: Mapping[Role, Kind] = {
    **BY_ROLE,
    "test": Kind.BUILD_BROKEN,
    "install": Kind.BUILD_BROKEN,
    "": Kind.BUILD_BROKEN,
}
BY_SIGNAL: Mapping[str, Kind] = {
    "KILL": Kind.KILLED,
    "TERM": Kind.KILLED,
    "HUP": Kind.KILLED,
    "INT": Kind.INTERRUPTED,
    "XCPU": Kind.TIMEOUT,
    "ALRM": Kind.TIMEOUT,
    "XFSZ": Kind.DISK_FULL,
    **dict.fromkeys(("SEGV", "ABRT", "BUS", "FPE", "ILL", "TRAP", "SYS"), Kind.PROGRAM_CRASHED),
}
SIGNALS = {1: "HUP", 2: "INT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 11: "SEGV", 13: "PIPE",
           14: "ALRM", 15: "TERM", 24: "XCPU", 25: "XFSZ", 31: "SYS"}  # fmt: skip
TIMED_OUT = 124
BY_EXIT: Mapping[int, tuple[Kind, int]] = {
    TIMED_OUT: (Kind.TIMEOUT, 60),
    126: (Kind.PERMISSION_DENIED, 55),
    127: (Kind.COMMAND_NOT_FOUND, 58),
}
BY_PROGRAM_EXIT: Mapping[str, Mapping[int, Kind]] = {
    "curl": {
        1: Kind.INVALID_ARGUMENTS, 2: Kind.INVALID_ARGUMENTS, 3: Kind.INVALID_ARGUMENTS,
        **dict.fromkeys((5, 6, 7, 18, 35, 51, 52, 55, 56, 58, 59, 60, 77, 92), Kind.NETWORK_ERROR),
        22: Kind.NETWORK_ERROR, 26: Kind.FILE_NOT_FOUND, 28: Kind.TIMEOUT, 37: Kind.FILE_NOT_FOUND,
        67: Kind.AUTH_FAILED, 78: Kind.FILE_NOT_FOUND,
    },
    "wget": {2: Kind.INVALID_ARGUMENTS, 4: Kind.NETWORK_ERROR, 5: Kind.NETWORK_ERROR, 6: Kind.AUTH_FAILED,
             8: Kind.NETWORK_ERROR},
    "ssh": {255: Kind.NETWORK_ERROR},
    "scp": {255: Kind.NETWORK_ERROR},
    "rsync": {10: Kind.NETWORK_ERROR, 12: Kind.NETWORK_ERROR, 23: Kind.FILE_NOT_FOUND,
              30: Kind.TIMEOUT, 35: Kind.TIMEOUT},
    "pytest": {2: Kind.BUILD_BROKEN, 4: Kind.INVALID_ARGUMENTS, 5: Kind.UNVERIFIED},
}  # fmt: skip
"""Exit codes that a program documents. A failed write has none: the folder may be missing as well as the disk full."""
BY_END: Mapping[str, Kind] = {
    "context_exhausted": Kind.CONTEXT_EXHAUSTED,
    "rate_limited": Kind.RATE_LIMITED,
    "overloaded": Kind.PROVIDER_OVERLOADED,
    "auth_failed": Kind.AUTH_FAILED,
    "billing": Kind.BILLING,
    "max_turns": Kind.TASK_INCOMPLETE,
    "budget": Kind.TASK_INCOMPLETE,
    "permission_denied": Kind.PERMISSION_DENIED,
    "refused": Kind.AGENT_FAILED,
    "asks": Kind.QUESTION,
    "failed_claimed": Kind.AGENT_FAILED,
    "tool_hang": Kind.HANG,
    "crashed": Kind.AGENT_CRASHED,
    "killed": Kind.KILLED,
    "no_work": Kind.NO_CHANGE,
    "unreadable": Kind.RESULT_UNREADABLE,
    "network": Kind.NETWORK_ERROR,
    "bad_request": Kind.INVALID_ARGUMENTS,
}
"""What an agent's own end reason means."""
TESTED = frozenset({Kind.TEST_FAILED, Kind.TEST_TIMEOUT})
OFFLINE = frozenset({Kind.NETWORK_ERROR, Kind.TIMEOUT})
NOT_LOADED = frozenset({Kind.MODULE_MISSING, Kind.DEPENDENCY_MISSING, Kind.IMPORT_CYCLE})
ABOUT_CODE = frozenset({
    Kind.SYNTAX_ERROR, Kind.MODULE_MISSING, Kind.DEPENDENCY_MISSING, Kind.IMPORT_CYCLE, Kind.FILE_NOT_FOUND,
    Kind.BUILD_BROKEN, Kind.OUT_OF_MEMORY, Kind.DISK_FULL, Kind.LINT_FAILED, Kind.TYPES_FAILED, Kind.COMMAND_NOT_FOUND,
    Kind.PLAN_INVALID, Kind.CIRCULAR_DEPENDENCY, Kind.MALFORMED_INPUT,
})  # fmt: skip
"""What a complaint about a place in a file can be; other words in it are the file's own."""
OF_ITSELF = r"(?i)^\W{0,3}(?:[\w./-]{1,40}: |an )?(?:error|fatal|failed|usage|oops|\w*(?:Error|Exception)|no (?:rules?|files?|config\w*|inputs?))\b"
MET = frozenset({Kind.NETWORK_ERROR, Kind.TIMEOUT, Kind.DISK_FULL, Kind.OUT_OF_MEMORY})
"""What a checker's own error line looks like; and what it meets on its way, which no code is said to have."""
WISHED = r"(?i)\b(?:when|if|until|once|make|todo|must|should|not (?:yet )?done|so that|ensure|whether)\b"
"""What turns a claim into a wish."""
DENIED = r"(?i)\b(?:fail|failed|fails|failing|(?:could|did|do|does|is|are|was) ?n[o']t|cannot|unable|blocked|partial\w*|incomplete|still)\b|\[ \]"
NOTHING = r"(?i)\b(?:no|0|zero|nothing|none|never|without|previous\w*|fix\w*)\b.{0,40}"
"""What takes a claim back, and what is said of faults that are gone."""
MERE_FILE = re.compile(r"^(?:\d+ - )?\S*?[\w/-]\.\w{1,4}(?: \([\d.]+ ?m?s\))?$")
OF_PHASES = frozenset({
    Kind.PLAN_INVALID, Kind.CIRCULAR_DEPENDENCY, Kind.RESULT_UNREADABLE, Kind.CLAIM_REFUTED, Kind.TASK_INCOMPLETE,
})  # fmt: skip
ALSO_IN_PHASE: Mapping[Kind, frozenset[Kind]] = {
    Kind.SYNTAX_ERROR: frozenset({Kind.LINT_FAILED, Kind.TYPES_FAILED}),
    Kind.MALFORMED_INPUT: frozenset({Kind.PLAN_INVALID}),
    **dict.fromkeys((Kind.INVALID_ARGUMENTS, Kind.FILE_NOT_FOUND, Kind.CHECK_FAILED), OF_PHASES),
}
"""What the phase failed at, where that is seen as well: a linter that cannot parse a file, a plan that is no JSON."""
ALSO_MISSING = {
    Kind.DEPENDENCY_MISSING: frozenset({Kind.FILE_NOT_FOUND, Kind.MODULE_MISSING}),
    Kind.PACKAGE_NOT_FOUND: frozenset({Kind.FILE_NOT_FOUND}),
}
"""A header that is not installed, or a package that a server does not have, is also a file that was not found."""
CHECKS = frozenset({Kind.TEST_FAILED, Kind.LINT_FAILED, Kind.TYPES_FAILED, Kind.FORMAT_FAILED, Kind.CHECK_FAILED})
REFUTE = CHECKS | TESTED | {Kind.BUILD_BROKEN}

NO_TEST_RUN: Mapping[Role, int] = {"build": ERROR_FOUND - 1, "install": NOISE}
"""What words that only look like a test's verdict are worth where no test runs: steps and downloads fail, too."""

BROKEN_SCHEMA = 65
TAKEN_FOR = REFUTE | {Kind.SYNTAX_ERROR, Kind.MALFORMED_INPUT, Kind.PROGRAM_CRASHED, Kind.UNKNOWN}
"""What arguments that break their schema are worth, and what the words of those who refuse them are taken for."""

READ = CHECKS | TESTED | {Kind.CLAIM_REFUTED, Kind.BUILD_BROKEN, Kind.SYNTAX_ERROR, Kind.MODULE_MISSING}
"""Kinds whose output names tests or findings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis(Judged):
    """A judged failure: its kind, the decisive line, and what it names."""

    kind: Kind
    confidence: float
    message: str = ""
    line: int | None = None
    rule: str = ""
    where: tuple[tuple[str, int | None], ...] = ()
    tests: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    """What the decisive line names: package, command, port, variable …"""
    resets: str = ""
    """When a limit ends, in the provider's words."""
    alternatives: tuple[tuple[Kind, float], ...] = ()
    evidence: Evidence = field(default=Evidence(), repr=False, compare=False)
    """What it was judged from."""

    @property
    def guessed(self) -> bool:
        """Whether it only beats knowing nothing: good enough to tell, too little to act on."""
        return self.rule.startswith("perhaps.")

    @property
    def category(self) -> str | None:
        return KINDS[self._also(ALSO_MISSING)].category

    @property
    def phase_type(self) -> str | None:
        own_words = ALSO_IN_PHASE.get(self.kind) is OF_PHASES and self.confidence >= OWN_WORDS / 100
        return KINDS[self.kind if own_words else self._also(ALSO_IN_PHASE)].phase_type

    def _also(self, table: Mapping[Kind, frozenset[Kind]]) -> Kind:
        """Return what else is seen, where that has the better word in a view."""
        also = table.get(self.kind, frozenset())
        return next((kind for kind, _ in self.alternatives if kind in also), self.kind)

    @property
    def signature(self) -> str:
        from unstuck.diagnosis.signature import signature  # noqa: PLC0415  # not every diagnosis is named

        whole = f"{self.evidence.stdout}\n{self.evidence.stderr}"
        return signature(whole if len(whole) <= NAMED_WHOLE else self.message, str(self.kind), self.tests)


class Vote(NamedTuple):
    kind: Kind
    weight: int
    hit: Hit | None = None
    last: bool = False


def diagnose(
    evidence: Evidence, lines: Sequence[Line], hits: Sequence[Hit], rules: Mapping[str, Rule]
) -> Diagnosis | None:
    """Say what went wrong, or None if nothing did. `hits` are what a scan of `lines` found."""
    for_what = role(evidence.command, evidence.tool, evidence.check)
    found = holding(evidence, lines, hits, rules)
    votes = _votes(
        found, _noisy(lines, found, rules), _reported(evidence, lines, found, for_what, rules), for_what, rules
    )
    if _succeeded(evidence, found, votes, rules):
        return None
    if evidence.exit_code != 0:
        votes += _facts(evidence, for_what)
    else:
        votes = [vote for vote in votes if _despite_zero(vote, evidence, rules)] + _facts(evidence, "")
    if _refused(evidence):
        votes = [Vote(Kind.INVALID_ARGUMENTS, BROKEN_SCHEMA), *(vote for vote in votes if vote.kind not in TAKEN_FOR)]
    ranked = sorted(enumerate(votes), key=lambda vote: _rank(vote[0], vote[1]))
    chosen = [vote for _, vote in ranked] or [Vote(Kind.UNKNOWN, 30)]
    told = _told(_refuted_claim(chosen, _claimed(lines, found, rules)), lines, found, rules)
    ours = evidence.breaks and told.kind is Kind.INVALID_ARGUMENTS and not told.rule
    return replace(told, message=one_line(evidence.breaks, MESSAGE_CHARS), line=None) if ours else told


# --- evidence to votes ------------------------------------------------------------------------------------


def holding(evidence: Evidence, lines: Sequence[Line], hits: Sequence[Hit], rules: Mapping[str, Rule]) -> list[Hit]:
    """Drop hits whose conditions do not hold, or that another hit refutes."""
    asked = f"{evidence.tool}\n{evidence.command}"
    held = []
    for hit in hits:
        rule = rules[hit.rule]
        if rule.exits and evidence.exit_code is not None and evidence.exit_code not in rule.exits:
            continue
        if rule.stream and lines[hit.line].stream != rule.stream:
            continue
        if rule.command and not re.search(rule.command, asked):
            continue
        held.append(hit)
    fired = {hit.rule for hit in held}
    return [hit for hit in held if _holds(rules[hit.rule], fired)]


def _holds(rule: Rule, fired: set[str]) -> bool:
    return fired.isdisjoint(rule.unless) and not (rule.needs and fired.isdisjoint(rule.needs))


def _noisy(lines: Sequence[Line], hits: Sequence[Hit], rules: Mapping[str, Rule]) -> set[int]:
    """Return the lines with a hit that are warnings, log entries or quoted code."""
    texts = {line: plain(lines[line].text) for line in {hit.line for hit in hits}}
    whole = "\n".join(texts.values())
    noise = [
        re.compile(rule.pattern, re.ASCII)
        for rule in rules.values()
        if rule.proves == "noise" and (not rule.needles or any(needle in whole for needle in rule.needles))
    ]
    return {line for line, text in texts.items() if any(each.search(text) for each in noise)}


def _reported(
    evidence: Evidence, lines: Sequence[Line], hits: Sequence[Hit], for_what: Role, rules: Mapping[str, Rule]
) -> set[int]:
    """Return the lines in which a checker tells of the code, not of itself: its words are the code's own."""
    if for_what not in {"lint", "types", "format"} or evidence.stderr.strip():
        return set()
    met = {hit.line for hit in hits if rules[hit.rule].proves in MET}
    return {hit.line for hit in hits if not re.search(OF_ITSELF, lines[hit.line].text)} - met


def _votes(
    hits: Sequence[Hit], noisy: set[int], reported: set[int], for_what: Role, rules: Mapping[str, Rule]
) -> list[Vote]:
    unloaded = any(_unloaded(rules[hit.rule], for_what) for hit in hits if hit.line not in noisy)
    offline = for_what == "install" and any(rules[hit.rule].proves in OFFLINE for hit in hits if hit.line not in noisy)
    findings = reported | {
        hit.line for hit in hits if rules[hit.rule].proves == "finding" and rules[hit.rule].strength >= FOUND
    }
    votes = []
    for hit in hits:
        rule = rules[hit.rule]
        kind = _kind(rule, for_what, about_code=hit.line in findings)
        if kind is None or (unloaded and kind in TESTED):
            continue
        weight = rule.strength
        if for_what == "test" and rule.proves == "finding" and weight < ERROR_FOUND:
            weight = NOISE  # a failing test names its place, too
        if for_what == "test" and kind in TESTED and rule.pattern:
            weight = min(weight + VERDICT, max(weight, SURE))
        if for_what in {"build", "install"} and kind in TESTED and weight < OWN_WORDS:
            weight = min(weight, NO_TEST_RUN[for_what])
        if for_what and kind is Kind.TASK_INCOMPLETE and weight < OWN_WORDS:
            weight = NOISE  # "0 of 3 steps succeeded" counts the tool's own steps
        if hit.line in findings and rule.proves != "finding" and kind not in ABOUT_CODE and rule.strength < SURE:
            weight = min(weight, NOISE)
        if offline and kind is Kind.PACKAGE_NOT_FOUND:
            weight = min(weight, rule.strength, ERROR_FOUND)  # it was not found because nobody could be asked
        if hit.line in noisy and not rule.loud:
            weight = min(weight, NOISE)
        votes.append(Vote(kind, weight, hit, rule.last))
    return votes


def _unloaded(rule: Rule, for_what: Role) -> bool:
    """Whether tests could not be loaded: their runner says so, or what they import is missing."""
    return rule.proves == "not_loaded" or (
        for_what == "test" and rule.proves in NOT_LOADED and rule.strength >= OWN_WORDS
    )


def _kind(rule: Rule, for_what: Role, *, about_code: bool) -> Kind | None:
    """Name what a rule proves, where that follows from what the command is for."""
    if rule.proves == "finding":
        return FINDING[for_what]
    if rule.proves == "not_loaded":
        return Kind.BUILD_BROKEN
    if not isinstance(rule.proves, Kind):
        return None
    vague = rule.proves is Kind.CHECK_FAILED or (rule.proves is Kind.TEST_FAILED and rule.strength < OWN_WORDS)
    if vague and for_what in {"test", "lint", "types", "format"}:
        return BY_ROLE[for_what]
    if rule.proves is Kind.BUILD_BROKEN and rule.strength < OWN_WORDS and for_what in {"lint", "types", "format"}:
        return BY_ROLE[for_what]  # what a compiler would say as well is what such a tool was asked for
    if rule.proves is Kind.LINT_FAILED and for_what == "types":
        return Kind.TYPES_FAILED
    if rule.proves is Kind.DEPENDENCY_MISSING and for_what == "install":
        return Kind.PACKAGE_NOT_FOUND
    if rule.proves is Kind.MALFORMED_INPUT and rule.strength < OWN_WORDS and for_what in {"build", "install", "test"}:
        return Kind.SYNTAX_ERROR  # what such a tool reads is the project's configuration
    if rule.proves is Kind.FILE_NOT_FOUND and about_code and for_what == "build":
        return Kind.MODULE_MISSING
    return rule.proves


def signal_of(code: int | None) -> str:
    """Name the signal that an exit code tells of: Python's are below zero, a shell's that much above 128."""
    return SIGNALS.get(-code if code and code < 0 else (code or 0) - 128, "")


def _facts(evidence: Evidence, for_what: Role) -> list[Vote]:
    """Turn what is known without reading the output into votes."""
    votes = []
    if evidence.end in BY_END:
        votes.append(Vote(BY_END[evidence.end], 99))
    if evidence.timed_out:
        votes.append(Vote(Kind.TIMEOUT, 97))
    code = evidence.exit_code
    limited = any(re.match(r"(?:busybox\s+)?timeout\s", part) for part in parts(evidence.command))
    if limited and code == TIMED_OUT:
        votes.append(Vote(Kind.TIMEOUT, SURE))
    name = evidence.signal.upper().removeprefix("SIG") or signal_of(code)
    if name in BY_SIGNAL:
        kind = Kind.TIMEOUT if limited and name in {"KILL", "TERM"} else BY_SIGNAL[name]
        votes.append(Vote(kind, 88 if evidence.signal or name == "KILL" else 62))
    if code is not None and code in BY_EXIT:
        votes.append(Vote(*BY_EXIT[code]))
    for part in (*programs(evidence.command), evidence.tool):
        kind_of = BY_PROGRAM_EXIT.get(part.split(" ")[0], {})
        if code is not None and code in kind_of:
            votes.append(Vote(kind_of[code], 50))
    if evidence.changed is False and evidence.end == "done_claimed":
        votes.append(Vote(Kind.NO_CHANGE, 98))
    if for_what in BY_ROLE and code != 0:
        votes.append(Vote(BY_ROLE[for_what], ROLE_WEIGHT))
    return votes


def _refused(evidence: Evidence) -> bool:
    """Whether a tool refused its arguments: they break its schema, and what it printed is not that of a command."""
    return bool(evidence.breaks) and not evidence.command and evidence.exit_code != 0


def _succeeded(evidence: Evidence, hits: Sequence[Hit], votes: Sequence[Vote], rules: Mapping[str, Rule]) -> bool:
    """Whether the command did what was asked of it."""
    if evidence.timed_out or evidence.signal or evidence.end in BY_END or _refused(evidence):
        return False
    if evidence.changed is False and evidence.end == "done_claimed":
        return False
    heaviest = max((vote.weight for vote in votes), default=0)
    if evidence.exit_code == 0:
        return not any(_despite_zero(vote, evidence, rules) for vote in votes)
    if evidence.exit_code is None:
        succeeded = [hit.line for hit in hits if rules[hit.rule].proves == "success"]
        failed = [vote.hit.line for vote in votes if vote.hit and vote.weight >= TEXT_ALONE]
        return heaviest < TEXT_ALONE or bool(succeeded and max(succeeded) > max(failed) and heaviest < 90)  # noqa: PLR2004
    return (
        heaviest < TEXT_ALONE
        and is_answer(evidence.command, evidence.tool, evidence.exit_code)
        and not evidence.stderr.strip()
    )


def _despite_zero(vote: Vote, evidence: Evidence, rules: Mapping[str, Rule]) -> bool:
    """Whether this proves a failure though the exit code is 0: of a later command, or of a client that did its part."""
    if vote.hit is None or vote.weight <= NOISE or "||" in evidence.command:  # which says what to do if it fails
        return False
    masked = len(programs(evidence.command)) > 1 and evidence.stderr.strip() and not evidence.stdout.strip()
    return rules[vote.hit.rule].zero or bool(masked and vote.weight >= OWN_WORDS and vote.kind not in CHECKS)


# --- the choice -----------------------------------------------------------------------------------------


def _rank(place: int, vote: Vote) -> tuple[int, int, int]:
    """Order votes: heavier first; among equals the first line, or the last where the rule says so."""
    line = vote.hit.line if vote.hit else 0
    return (-vote.weight, -line if vote.last else line, place)


def _claimed(lines: Sequence[Line], hits: Sequence[Hit], rules: Mapping[str, Rule]) -> int | None:
    """Return where success is claimed before anything is checked: in no wish, and in a text that does not take it back."""
    ruled = (place for place, line in enumerate(lines) if place and line.text.startswith(("---", "===")))
    strong = (hit.line for hit in hits if rules[hit.rule].proves in KINDS and rules[hit.rule].strength >= FOUND)
    check = min(next(ruled, len(lines)), next(strong, len(lines)))
    said = [hit.line for hit in hits if hit.line < check and rules[hit.rule].proves == "claim"]
    denied = said and any(re.search(DENIED, re.sub(NOTHING, "", line.text)) for line in lines[:check])
    return None if denied else next((line for line in said if not re.search(WISHED, lines[line].text)), None)


def _refuted_claim(votes: list[Vote], claim: int | None) -> list[Vote]:
    """Call a failed check below a claim of success a claim refuted."""
    first = votes[0]
    if first.kind in REFUTE and claim is not None and (not first.hit or claim < first.hit.line):
        return [first._replace(kind=Kind.CLAIM_REFUTED), *votes]
    return votes


def _told(votes: Sequence[Vote], lines: Sequence[Line], hits: Sequence[Hit], rules: Mapping[str, Rule]) -> Diagnosis:
    first = votes[0]
    hit = first.hit or next((vote.hit for vote in votes if vote.hit and vote.kind is first.kind), None)
    shown = lines[hit.line] if hit else _last(lines)
    others: dict[Kind, float] = {}
    for vote in votes:
        if vote.kind is not first.kind and vote.weight > GUESSED:
            others.setdefault(vote.kind, round(vote.weight / 100 * 0.6, 2))
    groups = hit.groups if hit else {}
    near = [each for each in hits if rules[each.rule].proves not in {"claim", "success"}]
    reading = (
        read("\n".join(line.text for line in lines), formatter=first.kind is Kind.FORMAT_FAILED)
        if first.kind in READ
        else Reading()
    )
    return Diagnosis(
        kind=first.kind,
        confidence=_confidence(votes),
        message=one_line(shown.text, MESSAGE_CHARS) if shown else "",
        line=shown.number if shown else None,
        rule=hit.rule if hit else "",
        where=_places(hit, reading, near),
        tests=_tests(reading, near, rules),
        names=tuple((key, value) for key, value in groups.items() if key not in {"file", "line", "test", "resets"}),
        resets=next((each.groups["resets"] for each in near if "resets" in each.groups), ""),
        alternatives=tuple(others.items())[:OTHERS],
    )


def _confidence(votes: Sequence[Vote]) -> float:
    """Return how sure we are: what the text proves and what the facts prove are independent of one another."""
    first = votes[0]
    text = max((vote.weight for vote in votes if vote.kind is first.kind and vote.hit), default=0)
    fact = max((vote.weight for vote in votes if vote.kind is first.kind and not vote.hit), default=0)
    return round(min(1 - (1 - text / 100) * (1 - fact / 100), 0.99), 2)


def _tests(reading: Reading, hits: Sequence[Hit], rules: Mapping[str, Rule]) -> tuple[str, ...]:
    """Return the failing tests as their runner names them, or else as the shape of a line suggests; a file is no test."""
    if failed := [one.label for one in reading.failures if one.name]:
        return tuple(dict.fromkeys(failed))[:TESTS]
    if reading.failures:
        return ()
    named = [hit for hit in hits if "test" in hit.groups and not MERE_FILE.match(hit.groups["test"])]
    sure = [hit for hit in named if rules[hit.rule].strength >= OWN_WORDS]
    return tuple(dict.fromkeys(hit.groups["test"] for hit in sure or named))[:TESTS]


def _places(hit: Hit | None, reading: Reading, near: Sequence[Hit]) -> tuple[tuple[str, int | None], ...]:
    """Return the places to look at: of the decisive line, of failing tests and findings, of other lines."""
    failed = [(one.file, one.line) for one in reading.failures if one.line]
    found = [(one.file, one.line) for one in reading.findings if one.severity == "error"]
    places = [*_places_of([hit] if hit else []), *failed, *found, *_places_of(near)]
    return tuple(dict.fromkeys(places))[:PLACES]


def _places_of(hits: Sequence[Hit]) -> list[tuple[str, int | None]]:
    return [
        (hit.groups["file"], int(hit.groups["line"]) if hit.groups.get("line", "").isdigit() else None)
        for hit in hits
        if "file" in hit.groups
    ]


def _last(lines: Sequence[Line]) -> Line | None:
    """Return the line to show where no rule fires: the last that is not blank, of stderr if there is any."""
    spoken = [line for line in lines if line.text.strip()]
    errors = [line for line in spoken if line.stream == "stderr"]
    return (errors or spoken)[-1] if spoken else None
