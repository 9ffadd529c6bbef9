"""Decide what went wrong with one command: facts first, then what its output proves.

Every piece of evidence is a vote for a kind with a weight. The heaviest vote decides. Among equals the first line decides,
or the last for summaries and final exceptions. The purpose of the command names findings that do not name themselves.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from unstuck.diagnosis.diagnosis_result import TOOL_WORDING, Diagnosis
from unstuck.diagnosis.evidence import KIND_OF_ROLE, KIND_OF_SESSION_END, Evidence, Hit, Line, kinds_by_facts, plain
from unstuck.diagnosis.output.reading import Reading
from unstuck.diagnosis.output.tool_output import read_output
from unstuck.diagnosis.rule import Rule
from unstuck.model.failure import KINDS, Kind
from unstuck.model.text import one_line
from unstuck.toolchain.command_roles import Role, is_answer, role
from unstuck.toolchain.shell import programs

MESSAGE_CHARS = 300
MOST_PLACES, MOST_TESTS, MOST_ALTERNATIVES = 20, 50, 3

# Weights of votes, from 0 to 100.
NOISE = 20
"""The most that a hit is worth on a line that is a warning, a log entry or quoted code."""
TEST_VERDICT_BONUS = 25
GUESS = 41
"""The weight of a word alone: more than nothing, too little to show beside something else."""
PLACE_IN_FILE, ERROR_IN_FILE = 44, 55
"""The least strength of a rule about a place in a file, or about an error there."""
TEXT_WITHOUT_EXIT_CODE = 45
"""The least weight of a text that is called a failure without an exit code."""
REFUSED_ARGUMENTS = 65
TEXT_AFTER_SUCCESS = 90
"""A failure of this weight counts even where the output ends in success."""
CERTAIN = 95
NO_TEST_RUN: Mapping[Role, int] = {"build": ERROR_IN_FILE - 1, "install": NOISE}
"""The most that a test's verdict is worth where no test runs: steps and downloads fail, too."""

FINDING_KIND: Mapping[Role, Kind] = {
    **KIND_OF_ROLE,
    "test": Kind.BUILD_BROKEN,
    "install": Kind.BUILD_BROKEN,
    "": Kind.BUILD_BROKEN,
}
TEST_KINDS = frozenset({Kind.TEST_FAILED, Kind.TEST_TIMEOUT})
OFFLINE_KINDS = frozenset({Kind.NETWORK_ERROR, Kind.TIMEOUT})
IMPORT_KINDS = frozenset({Kind.MODULE_MISSING, Kind.DEPENDENCY_MISSING, Kind.IMPORT_CYCLE})
CODE_KINDS = frozenset({
    Kind.SYNTAX_ERROR, Kind.MODULE_MISSING, Kind.DEPENDENCY_MISSING, Kind.IMPORT_CYCLE, Kind.FILE_NOT_FOUND,
    Kind.BUILD_BROKEN, Kind.OUT_OF_MEMORY, Kind.DISK_FULL, Kind.LINT_FAILED, Kind.TYPES_FAILED, Kind.COMMAND_NOT_FOUND,
    Kind.PLAN_INVALID, Kind.CIRCULAR_DEPENDENCY, Kind.MALFORMED_INPUT,
})  # fmt: skip
"""Possible kinds of a complaint about a place in a file. Other words in it are the file's own."""
CHECKER_KINDS = frozenset({Kind.NETWORK_ERROR, Kind.TIMEOUT, Kind.DISK_FULL, Kind.OUT_OF_MEMORY})
"""Problems of a checker itself, which it never reports about code."""
CHECK_KINDS = frozenset({Kind.TEST_FAILED, Kind.LINT_FAILED, Kind.TYPES_FAILED, Kind.FORMAT_FAILED, Kind.CHECK_FAILED})
REFUTING_KINDS = CHECK_KINDS | TEST_KINDS | {Kind.BUILD_BROKEN}
"""Kinds that refute a claim of success."""
REFUSAL_KINDS = REFUTING_KINDS | {Kind.SYNTAX_ERROR, Kind.MALFORMED_INPUT, Kind.PROGRAM_CRASHED, Kind.UNKNOWN}
"""Kinds that the words of a tool that refuses its arguments look like."""
KINDS_WITH_NAMES = CHECK_KINDS | TEST_KINDS | {
    Kind.CLAIM_REFUTED, Kind.BUILD_BROKEN, Kind.SYNTAX_ERROR, Kind.MODULE_MISSING,
}  # fmt: skip
"""Kinds whose output names tests or findings."""

OWN_ERROR_LINE = r"(?i)^\W{0,3}(?:[\w./-]{1,40}: |an )?(?:error|fatal|failed|usage|oops|\w*(?:Error|Exception)|no (?:rules?|files?|config\w*|inputs?))\b"
"""A line in which a checker reports an error of its own."""
WISH = r"(?i)\b(?:when|if|until|once|make|todo|must|should|not (?:yet )?done|so that|ensure|whether)\b"
"""Words that turn a claim into a wish."""
DENIAL = r"(?i)\b(?:fail|failed|fails|failing|(?:could|did|do|does|is|are|was) ?n[o']t|cannot|unable|blocked|partial\w*|incomplete|still)\b|\[ \]"
"""Words that take a claim back."""
GONE_FAULT = r"(?i)\b(?:no|0|zero|nothing|none|never|without|previous\w*|fix\w*)\b.{0,40}"
"""Words about faults that are gone."""
FILE_NAME = re.compile(r"^(?:\d+ - )?\S*?[\w/-]\.\w{1,4}(?: \([\d.]+ ?m?s\))?$")

Rules = Mapping[str, Rule]


class Vote(NamedTuple):
    """One piece of evidence for a kind."""

    kind: Kind
    weight: int
    hit: Hit | None = None
    is_last: bool = False
    """Among equals the last line decides, and not the first."""


def judge(evidence: Evidence, lines: Sequence[Line], hits: Sequence[Hit], rules: Rules) -> Diagnosis | None:
    """Return what went wrong, or None if nothing did. `hits` are the matches in `lines`."""
    command_role = role(evidence.command, evidence.tool, evidence.check)
    hits = valid_hits(evidence, lines, hits, rules)
    votes = _votes(
        hits,
        _noisy_lines(lines, hits, rules),
        _code_lines(evidence, lines, hits, command_role, rules),
        command_role,
        rules,
    )
    if _has_succeeded(evidence, hits, votes, rules):
        return None
    if evidence.exit_code == 0:
        votes = [vote for vote in votes if _counts_despite_success(vote, evidence, rules)]
    facts = kinds_by_facts(evidence, "" if evidence.exit_code == 0 else command_role)
    votes += [Vote(kind, weight) for kind, weight in facts]
    if _has_refused_arguments(evidence):
        other_votes = [vote for vote in votes if vote.kind not in REFUSAL_KINDS]
        votes = [Vote(Kind.INVALID_ARGUMENTS, REFUSED_ARGUMENTS), *other_votes]
    ranked = [vote for _, vote in sorted(enumerate(votes), key=lambda item: _rank(*item))]
    ranked = ranked or [Vote(Kind.UNKNOWN, 30)]
    diagnosis = _diagnosis(_with_refuted_claim(ranked, _claim_line(lines, hits, rules)), lines, hits, rules)
    if evidence.breaks and diagnosis.kind is Kind.INVALID_ARGUMENTS and not diagnosis.rule:
        return replace(diagnosis, message=one_line(evidence.breaks, MESSAGE_CHARS), line=None)
    return diagnosis


# --- from evidence to votes -------------------------------------------------------------------------------


def valid_hits(evidence: Evidence, lines: Sequence[Line], hits: Sequence[Hit], rules: Rules) -> list[Hit]:
    """Return the hits whose conditions hold and that no other hit refutes."""
    command = f"{evidence.tool}\n{evidence.command}"
    valid = []
    for hit in hits:
        rule = rules[hit.rule]
        if rule.exits and evidence.exit_code is not None and evidence.exit_code not in rule.exits:
            continue
        if rule.stream and lines[hit.line].stream != rule.stream:
            continue
        if rule.command and not re.search(rule.command, command):
            continue
        valid.append(hit)
    fired = {hit.rule for hit in valid}
    return [hit for hit in valid if _is_confirmed(rules[hit.rule], fired)]


def _is_confirmed(rule: Rule, fired: set[str]) -> bool:
    return fired.isdisjoint(rule.unless) and not (rule.needs and fired.isdisjoint(rule.needs))


def _noisy_lines(lines: Sequence[Line], hits: Sequence[Hit], rules: Rules) -> set[int]:
    """Return the lines with a hit that are warnings, log entries or quoted code."""
    texts = {line: plain(lines[line].text) for line in {hit.line for hit in hits}}
    joined = "\n".join(texts.values())
    noise_rules = [rule for rule in rules.values() if rule.proves == "noise"]
    patterns = [
        re.compile(rule.pattern, re.ASCII)
        for rule in noise_rules
        if not rule.needles or any(needle in joined for needle in rule.needles)
    ]
    return {line for line, text in texts.items() if any(pattern.search(text) for pattern in patterns)}


def _code_lines(
    evidence: Evidence, lines: Sequence[Line], hits: Sequence[Hit], command_role: Role, rules: Rules
) -> set[int]:
    """Return the lines in which a checker reports about code, so that their words are the code's own."""
    if command_role not in {"lint", "types", "format"} or evidence.stderr.strip():
        return set()
    about_checker = {hit.line for hit in hits if rules[hit.rule].proves in CHECKER_KINDS}
    return {hit.line for hit in hits if not re.search(OWN_ERROR_LINE, lines[hit.line].text)} - about_checker


def _votes(
    hits: Sequence[Hit], noisy_lines: set[int], code_lines: set[int], command_role: Role, rules: Rules
) -> list[Vote]:
    quiet_rules = [rules[hit.rule] for hit in hits if hit.line not in noisy_lines]
    has_unloaded_tests = any(_is_load_failure(rule, command_role) for rule in quiet_rules)
    is_offline = command_role == "install" and any(rule.proves in OFFLINE_KINDS for rule in quiet_rules)
    finding_lines = code_lines | {hit.line for hit in hits if _is_finding(rules[hit.rule])}
    votes = []
    for hit in hits:
        rule = rules[hit.rule]
        kind = _kind(rule, command_role, is_about_code=hit.line in finding_lines)
        if kind is None or (has_unloaded_tests and kind in TEST_KINDS):
            continue
        weight = _weight_for_role(rule, kind, command_role)
        if (
            hit.line in finding_lines
            and rule.proves != "finding"
            and kind not in CODE_KINDS
            and rule.strength < CERTAIN
        ):
            weight = min(weight, NOISE)
        if is_offline and kind is Kind.PACKAGE_NOT_FOUND:
            weight = min(weight, rule.strength, ERROR_IN_FILE)  # the index could not be asked
        if hit.line in noisy_lines and not rule.loud:
            weight = min(weight, NOISE)
        votes.append(Vote(kind, weight, hit, rule.last))
    return votes


def _is_finding(rule: Rule) -> bool:
    return rule.proves == "finding" and rule.strength >= PLACE_IN_FILE


def _weight_for_role(rule: Rule, kind: Kind, command_role: Role) -> int:
    """Return the weight of a hit as far as the purpose of the command changes it."""
    weight = rule.strength
    if command_role == "test" and rule.proves == "finding" and weight < ERROR_IN_FILE:
        weight = NOISE  # a failing test names its place, too
    if command_role == "test" and kind in TEST_KINDS and rule.pattern:
        weight = min(weight + TEST_VERDICT_BONUS, max(weight, CERTAIN))
    if command_role in {"build", "install"} and kind in TEST_KINDS and weight < TOOL_WORDING:
        weight = min(weight, NO_TEST_RUN[command_role])
    if command_role and kind is Kind.TASK_INCOMPLETE and weight < TOOL_WORDING:
        weight = NOISE  # "0 of 3 steps succeeded" counts the tool's own steps
    return weight


def _is_load_failure(rule: Rule, command_role: Role) -> bool:
    """Return whether tests could not be loaded: their runner says so, or an import is missing."""
    if rule.proves == "not_loaded":
        return True
    return command_role == "test" and rule.proves in IMPORT_KINDS and rule.strength >= TOOL_WORDING


def _kind(rule: Rule, command_role: Role, *, is_about_code: bool) -> Kind | None:
    """Return the kind that a rule proves, as far as the purpose of the command decides it."""
    if rule.proves == "finding":
        return FINDING_KIND[command_role]
    if rule.proves == "not_loaded":
        return Kind.BUILD_BROKEN
    if not isinstance(rule.proves, Kind):
        return None
    is_vague = rule.proves is Kind.CHECK_FAILED or (rule.proves is Kind.TEST_FAILED and rule.strength < TOOL_WORDING)
    if is_vague and command_role in {"test", "lint", "types", "format"}:
        return KIND_OF_ROLE[command_role]
    if (
        rule.proves is Kind.BUILD_BROKEN
        and rule.strength < TOOL_WORDING
        and command_role in {"lint", "types", "format"}
    ):
        return KIND_OF_ROLE[command_role]  # such a tool is there for what a compiler would report as well
    if rule.proves is Kind.LINT_FAILED and command_role == "types":
        return Kind.TYPES_FAILED
    if rule.proves is Kind.DEPENDENCY_MISSING and command_role == "install":
        return Kind.PACKAGE_NOT_FOUND
    is_project_tool = command_role in {"build", "install", "test"}
    if rule.proves is Kind.MALFORMED_INPUT and rule.strength < TOOL_WORDING and is_project_tool:
        return Kind.SYNTAX_ERROR  # such a tool reads the configuration of the project
    if rule.proves is Kind.FILE_NOT_FOUND and is_about_code and command_role == "build":
        return Kind.MODULE_MISSING
    return rule.proves


def _has_refused_arguments(evidence: Evidence) -> bool:
    """Return whether a tool refused its arguments: they break its schema, and no command ran."""
    return bool(evidence.breaks) and not evidence.command and evidence.exit_code != 0


def _has_succeeded(evidence: Evidence, hits: Sequence[Hit], votes: Sequence[Vote], rules: Rules) -> bool:
    if evidence.timed_out or evidence.signal or evidence.end in KIND_OF_SESSION_END or _has_refused_arguments(evidence):
        return False
    if evidence.changed is False and evidence.end == "done_claimed":
        return False
    if evidence.exit_code == 0:
        return not any(_counts_despite_success(vote, evidence, rules) for vote in votes)
    heaviest = max((vote.weight for vote in votes), default=0)
    if evidence.exit_code is None:
        successes = [hit.line for hit in hits if rules[hit.rule].proves == "success"]
        failures = [vote.hit.line for vote in votes if vote.hit and vote.weight >= TEXT_WITHOUT_EXIT_CODE]
        if heaviest < TEXT_WITHOUT_EXIT_CODE:
            return True
        return bool(successes and max(successes) > max(failures) and heaviest < TEXT_AFTER_SUCCESS)
    is_answered = is_answer(evidence.command, evidence.tool, evidence.exit_code)
    return heaviest < TEXT_WITHOUT_EXIT_CODE and is_answered and not evidence.stderr.strip()


def _counts_despite_success(vote: Vote, evidence: Evidence, rules: Rules) -> bool:
    """Return whether a vote proves a failure although the exit code is 0."""
    handles_failure = "||" in evidence.command
    if vote.hit is None or vote.weight <= NOISE or handles_failure:
        return False
    if rules[vote.hit.rule].zero:
        return True
    is_masked = len(programs(evidence.command)) > 1 and evidence.stderr.strip() and not evidence.stdout.strip()
    return bool(is_masked) and vote.weight >= TOOL_WORDING and vote.kind not in CHECK_KINDS


# --- the choice -------------------------------------------------------------------------------------------


def _rank(position: int, vote: Vote) -> tuple[int, int, int]:
    """Return the sort key of a vote: heavier first, then by its line."""
    line = vote.hit.line if vote.hit else 0
    return (-vote.weight, -line if vote.is_last else line, position)


def _claim_line(lines: Sequence[Line], hits: Sequence[Hit], rules: Rules) -> int | None:
    """Return the line that claims success before anything is checked, unless the text takes it back."""
    separators = (number for number, line in enumerate(lines) if number and line.text.startswith(("---", "===")))
    failures = (
        hit.line for hit in hits if rules[hit.rule].proves in KINDS and rules[hit.rule].strength >= PLACE_IN_FILE
    )
    first_check = min(next(separators, len(lines)), next(failures, len(lines)))
    claims = [hit.line for hit in hits if hit.line < first_check and rules[hit.rule].proves == "claim"]
    if claims and any(re.search(DENIAL, re.sub(GONE_FAULT, "", line.text)) for line in lines[:first_check]):
        return None
    return next((line for line in claims if not re.search(WISH, lines[line].text)), None)


def _with_refuted_claim(votes: list[Vote], claim: int | None) -> list[Vote]:
    """Return the votes with a refuted claim first, if a check failed below a claim of success."""
    first = votes[0]
    if first.kind in REFUTING_KINDS and claim is not None and (not first.hit or claim < first.hit.line):
        return [first._replace(kind=Kind.CLAIM_REFUTED), *votes]
    return votes


def _diagnosis(votes: Sequence[Vote], lines: Sequence[Line], hits: Sequence[Hit], rules: Rules) -> Diagnosis:
    kind = votes[0].kind
    hit = votes[0].hit or next((vote.hit for vote in votes if vote.hit and vote.kind is kind), None)
    decisive_line = lines[hit.line] if hit else _last_line(lines)
    groups = hit.groups if hit else {}
    failure_hits = [failure for failure in hits if rules[failure.rule].proves not in {"claim", "success"}]
    reading = Reading()
    if kind in KINDS_WITH_NAMES:
        reading = read_output("\n".join(line.text for line in lines), formatter=kind is Kind.FORMAT_FAILED)
    return Diagnosis(
        kind=kind,
        confidence=_confidence(votes),
        message=one_line(decisive_line.text, MESSAGE_CHARS) if decisive_line else "",
        line=decisive_line.number if decisive_line else None,
        rule=hit.rule if hit else "",
        where=_places(hit, reading, failure_hits),
        tests=_tests(reading, failure_hits, rules),
        names=tuple((key, value) for key, value in groups.items() if key not in {"file", "line", "test", "resets"}),
        resets=next((failure.groups["resets"] for failure in failure_hits if "resets" in failure.groups), ""),
        alternatives=_alternatives(votes),
    )


def _alternatives(votes: Sequence[Vote]) -> tuple[tuple[Kind, float], ...]:
    alternatives: dict[Kind, float] = {}
    for vote in votes:
        if vote.kind is not votes[0].kind and vote.weight > GUESS:
            alternatives.setdefault(vote.kind, round(vote.weight / 100 * 0.6, 2))
    return tuple(alternatives.items())[:MOST_ALTERNATIVES]


def _confidence(votes: Sequence[Vote]) -> float:
    """Return the confidence in the first kind: the text and the facts are independent of each other."""
    same_kind = [vote for vote in votes if vote.kind is votes[0].kind]
    text = max((vote.weight for vote in same_kind if vote.hit), default=0)
    fact = max((vote.weight for vote in same_kind if not vote.hit), default=0)
    return round(min(1 - (1 - text / 100) * (1 - fact / 100), 0.99), 2)


def _tests(reading: Reading, hits: Sequence[Hit], rules: Rules) -> tuple[str, ...]:
    """Return the failing tests as their runner names them, or else as the form of a line suggests."""
    labels = [failure.label for failure in reading.failures if failure.name]
    if labels:
        return tuple(dict.fromkeys(labels))[:MOST_TESTS]
    if reading.failures:
        return ()
    named = [hit for hit in hits if "test" in hit.groups and not FILE_NAME.match(hit.groups["test"])]
    certain = [hit for hit in named if rules[hit.rule].strength >= TOOL_WORDING]
    return tuple(dict.fromkeys(hit.groups["test"] for hit in certain or named))[:MOST_TESTS]


def _places(hit: Hit | None, reading: Reading, hits: Sequence[Hit]) -> tuple[tuple[str, int | None], ...]:
    """Return the places to look at: of the decisive line, of failing tests and findings, of other lines."""
    failures = [(failure.file, failure.line) for failure in reading.failures if failure.line]
    findings = [(finding.file, finding.line) for finding in reading.findings if finding.severity == "error"]
    places = [*_hit_places([hit] if hit else []), *failures, *findings, *_hit_places(hits)]
    return tuple(dict.fromkeys(places))[:MOST_PLACES]


def _hit_places(hits: Sequence[Hit]) -> list[tuple[str, int | None]]:
    return [
        (hit.groups["file"], int(hit.groups["line"]) if hit.groups.get("line", "").isdigit() else None)
        for hit in hits
        if "file" in hit.groups
    ]


def _last_line(lines: Sequence[Line]) -> Line | None:
    """Return the line to show where no rule matches: the last one with text, of stderr if it has any."""
    with_text = [line for line in lines if line.text.strip()]
    errors = [line for line in with_text if line.stream == "stderr"]
    return (errors or with_text)[-1] if with_text else None
