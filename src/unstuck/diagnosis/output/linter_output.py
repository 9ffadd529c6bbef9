"""Read the findings of linters, type checkers, formatters and compilers, with the figures at their end.

Patterns are compiled when they are first used: most diagnoses need none of them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from unstuck.diagnosis.output.reading import Finding, Reading, folded_message

REFORMATTED = "would be reformatted"
_PATH = r"(?:[A-Za-z]:[\\/])?[^\s:()\[\]'\"|]+"
_COLON_PLACE = (
    rf"^(?::\w+)?\s{{0,4}}({_PATH}\.\w{{1,12}}|{_PATH}/[A-Z]\w*file):(\d{{1,7}})(?::(\d{{1,5}}))?(?::| -)? +(\S.*)$"
)
_GREP_LINE = rf"^({_PATH}\.\w{{1,12}}):(\d{{1,7}}):(?!in [`'<])([^\s\d:].*)$"
"""As `grep -n` shows lines that should not be there."""
_PARENTHESES_PLACE = rf"^\s*({_PATH}\.\w+)\((\d+),\d+\): (?:fatal )?(error|warning) ?([A-Z]+\d+)?: (.*)$"
_WORDED_PLACE = rf"^({_PATH}): line (\d+), col \d+, (Error|Warning) - (.*?)(?: \((\S+)\))?$"
_MAVEN = rf"^\[(ERROR|WARNING)\] ({_PATH}\.\w+):\[(\d+),\d+\] (.*)$"
_GITHUB = r"^::(error|warning) (.*?)::(.*)$"
_LINKER_ERROR = rf"(?:^|: )({_PATH}\.\w+):\(\.\S+\): (undefined reference to .*)$"
_ARROW_PLACE = rf"^\s*--> ({_PATH}):(\d+):\d+$"
_LINE_ABOVE_ARROW = (
    r"^(?:(error|warning)(?:\[(\w+)\])?|([A-Z]{1,8}\d{2,5}|[a-z]+(?:-[a-z]+)*)):? (?:\[\*\] |\[-\] )?(\S.*)$"
)
_RULE_NAME = r"(?:#\[(?:warn|deny|forbid)\(|`-[DW] |index\.html#)([\w:-]+)"
_FILE_HEADING = rf"^({_PATH}\.\w+):?$"
_TABLE_ROW = r"^ +(\d+):(\d+) +(error|warning|✖|⚠|[A-Z]{1,8}\d{2,5}) +(\S.*)$"
_RULE_ON_NEXT_LINE = r"^\[([a-z]+(?:-[a-z]+)*)\]$"
_BIOME = rf"^({_PATH}):(\d+):\d+ ((?:lint|suppressions|assist|parse|format)\S*)(?: +FIXABLE)? +━+$"

_SEVERITY = r"(?i)^(?:vet: )?(?:fatal )?(error|warning|note|info|remark|hint|information)(?:\[(\w+)\])?(?:: *| {2,}| (?=TS\d))(?:(TS\d+): )?(?:\[([\w-]+)\] )?(.*)$"
_RULE_CODE = r"^(?:\[)?([A-Z]{1,8}\d{1,5})(?:\(([\w-]+)\), [^\]]*\])?(?::? (?:\[\*\] |\[-\] )?(.*))?$"
_RUBOCOP_RULE = r"^[CWEFRI]: (?:\[\w+\] )?([A-Z]\w+(?:/\w+)+): (.*)$"
_RULE_AT_END = r"\s+(?:\[(?:(?:Error|Warning)/)?(-W[\w=+-]+|@?[\w/-]+)\]|\(([a-z][\w-]*(?:, ?[a-z][\w-]*)*)\)|\((report\w+)\))$|\s{2,}((?:@?[\w-]+/)?[a-z]+(?:-[a-z]+)+)$"
_SWIFT_TEST = r"^error: -?\[?\w[\w.]*[. ]\w+\]? : "
"""A test of Swift that failed, which is no finding."""
_SEVERITY_AT_END = r"\[(Error|Warning)/\S+\]$"
_NO_FINDING = r"^in [\w<]|^\w+(?:Error|Exception|Warning|Exit|Interrupt|Failed)?$|^\w*Warning: |^assert\b|^\("

_REFORMATTED_FILE = (
    r"^[Ww]ould reformat:? (\S.*)$",
    rf"^\[warn\] ({_PATH}\.\w+)$",
    rf"^Diff in ({_PATH}\.\w+?)(?::\d+:?| at line \d+:?)$",
    rf"^ERROR: ({_PATH}) Imports are incorrectly sorted",
    rf"^ {{2}}\* ({_PATH}\.exs?)$",
)
_UNPARSED_FILE = (
    rf"^error: cannot (?:format|parse):? ({_PATH}):(?: (.*)|(\d+):\d+)$",
    rf"^\[error\] ({_PATH}\.\w+): (\w*Error: .*?)(?: \((\d+):\d+\))?$",
)


def read_findings(lines: Sequence[str], *, formatter: bool) -> Reading | None:
    """Return all findings, or None without one. A formatter may only list the files that it would change."""
    findings: list[Finding] = []
    heading = ""
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        if row := re.match(_TABLE_ROW, line):
            findings += _table_row(heading, row) if heading else []
        elif (finding := _two_lines(lines, number) or _one_line(line) or _whole_file(line)) is not None:
            findings.append(finding)
        elif (code := re.match(_RULE_ON_NEXT_LINE, line)) and findings and not findings[-1].rule:
            findings[-1] = replace(findings[-1], rule=code[1])
        elif title := re.match(_FILE_HEADING, line.strip() if formatter else line):
            heading = title[1]
            findings += [Finding(file=heading, rule="format", message=REFORMATTED)] if formatter else []
    kept = [finding for finding in findings if finding.severity in ("error", "warning")]
    is_repeated = any(line.startswith("[ERROR] COMPILATION ERROR") for line in lines)  # Maven prints everything twice
    if is_repeated:
        kept = list(dict.fromkeys(kept))
    return Reading(findings=tuple(kept)) if kept else None


def _table_row(heading: str, row: re.Match[str]) -> Iterator[Finding]:
    """Yield the finding of a row below a file's name, with the rule at either end."""
    rule, message, severity = row[3], row[4].removeprefix("[*] "), "error"
    if rule in ("error", "warning", "✖", "⚠"):
        severity = "warning" if rule in ("warning", "⚠") else "error"
        message, _, rule = row[4].rpartition("  ")
        message, rule = (message, rule.strip()) if message else (rule, "")
    yield Finding(file=heading, line=int(row[1]), rule=rule, severity=severity, message=folded_message([message]))


def _two_lines(lines: Sequence[str], number: int) -> Finding | None:
    """Return a finding with its place on the line below (rustc, ruff) or above (biome)."""
    if (at := re.match(_ARROW_PLACE, lines[number])) and number:
        above = next(
            (line for line in reversed(lines[max(0, number - 3) : number]) if re.match(_LINE_ABOVE_ARROW, line)), ""
        )
        if (says := re.match(_LINE_ABOVE_ARROW, above)) is None:
            return None
        rule = says[2] or says[3] or _lint_name(lines, number)
        return Finding(
            file=at[1], line=int(at[2]), rule=rule, severity=says[1] or "error", message=folded_message([says[4]])
        )
    if at := re.match(_BIOME, lines[number]):
        message = next((line.strip() for line in lines[number + 1 : number + 4] if line.strip()), "")
        severity = "error" if message.startswith("×") else "warning"  # noqa: RUF001  # as biome prints it
        return Finding(
            file=at[1], line=int(at[2]), rule=at[3], severity=severity, message=folded_message([message[1:]])
        )
    return None


def _lint_name(lines: Sequence[str], number: int) -> str:
    """Return the rule that the block below a place names, or an empty string."""
    for line in lines[number + 1 :]:
        if not line.strip() or re.match(_ARROW_PLACE, line):
            break
        if match := re.search(_RULE_NAME, line):
            return match[1]
    return ""


def _one_line(line: str) -> Finding | None:
    """Return the finding of one line with its place."""
    if at := re.match(_PARENTHESES_PLACE, line):
        return Finding(file=at[1], line=int(at[2]), rule=at[4] or "", severity=at[3], message=folded_message([at[5]]))
    if at := re.match(_WORDED_PLACE, line):
        return Finding(
            file=at[1], line=int(at[2]), rule=at[5] or "", severity=at[3].lower(), message=folded_message([at[4]])
        )
    if at := re.match(_MAVEN, line):
        return Finding(file=at[2], line=int(at[3]), severity=at[1].lower(), message=folded_message([at[4]]))
    if at := re.match(_GITHUB, line):
        return _github(at)
    if at := re.search(_LINKER_ERROR, line):
        return Finding(file=at[1], message=folded_message([at[2]]))
    if at := re.match(_GREP_LINE, line):
        return Finding(file=at[1], line=int(at[2]), message=folded_message([at[3]]))
    at = re.match(_COLON_PLACE, line.removeprefix("vet: "))
    return _described(at[1], int(at[2]), at[4], exact=at[3] is not None) if at else None


def _described(file: str, line: int, text: str, *, exact: bool) -> Finding | None:
    """Return a finding with its rule, severity and message. A place with mere words must be exact."""
    severity, rule = "error", ""
    if re.match(_SWIFT_TEST, text):
        return None
    if match := re.match(_SEVERITY, text):
        severity, rule, text = match[1].lower(), match[2] or match[3] or match[4] or "", match[5]
    elif match := re.match(_RUBOCOP_RULE, text):
        rule, text = match[1], match[2]
    elif match := re.match(_RULE_CODE, text):
        rule, text = match[1], match[3] or ""
    elif not exact or re.match(_NO_FINDING, text):
        return None
    if said_as := re.search(_SEVERITY_AT_END, text):
        severity = said_as[1].lower()
    if ending := re.search(_RULE_AT_END, text):
        named = ending[1] or ending[2] or ending[3] or ending[4]
        rule, text = rule or named, text[: ending.start()]
    return Finding(file=file, line=line, rule=rule, severity=severity, message=folded_message([text]))


def _github(at: re.Match[str]) -> Finding:
    values = dict(part.partition("=")[::2] for part in at[2].split(","))
    rule = re.search(r"\((\w[\w-]*)\)", values.get("title", ""))
    number = values.get("line", "")
    message = re.sub(r"^\S+:\d+:\d+: (?:[A-Z]+\d+ )?", "", at[3].partition("%0A")[0])
    line = int(number) if number.isdigit() else None
    return Finding(
        file=values.get("file", ""),
        line=line,
        rule=rule[1] if rule else "",
        severity=at[1],
        message=folded_message([message]),
    )


def _whole_file(line: str) -> Finding | None:
    """Return the finding of a formatter about a file."""
    for form in _REFORMATTED_FILE:
        if match := re.match(form, line):
            return Finding(file=match[1], rule="format", message=REFORMATTED)
    for form in _UNPARSED_FILE:
        if match := re.match(form, line):
            at = match[3]
            return Finding(
                file=match[1],
                line=int(at) if at else None,
                rule="syntax",
                message=folded_message([match[2] or "cannot be parsed"]),
            )
    return None


_COVERAGE = (
    r"^TOTAL\s.*?(\d+(?:\.\d+)?)%\s*$",
    (r"^(?:ℹ |# )?[Aa]ll files +\| +(\d+(?:\.\d+)?) \|"),  # noqa: RUF001  # as the tool prints it
    r"^total:\s+\(statements\)\s+(\d+(?:\.\d+)?)%",
)
_COVERAGE_SENTENCE = r"(?i)\bcover(?:age|ed)?\b[^\n%\d]{0,40}?(\d+(?:\.\d+)?) ?%"
_COVERAGE_LIMIT = r"(?i)threshold|minimum|at least"
_FIGURE = r"(?i)(?<![\w.:/#-])(\d{1,9})[ \t]+(?:\w+[ \t]+)?(error|warning|violation|problem|offen[sc]e|issue|vulnerabilit(?:y|ies))s?\b"
_NOT_A_SUM = r"(?i)fixable|correctable|\bprevious\b|\bretr(?:y|ied)"
_RATING = r"^Your code has been rated at (-?\d+(?:\.\d+)?)/10"
_PLURAL = {"vulnerability": "vulnerabilities", "offence": "offenses"}


def read_figures(lines: Sequence[str]) -> Reading | None:
    """Return the last figure of each name, with the mean of several coverages."""
    measures: dict[str, float] = {}
    for line in lines:
        if rating := re.match(_RATING, line):
            measures["rating"] = float(rating[1])
        for match in re.finditer(_FIGURE, line):
            name = match[2].lower()
            if not re.search(_NOT_A_SUM, line[match.start() :].partition(",")[0]):
                measures[_PLURAL.get(name, name if name.endswith("ies") else f"{name}s")] = float(match[1])
    coverage = _coverage(lines)
    if coverage is not None:
        measures["coverage"] = coverage
    return Reading(measures=measures) if measures else None


def _coverage(lines: Sequence[str]) -> float | None:
    """Return the coverage in the last line of a table, or the mean of the coverages in sentences."""
    for form in _COVERAGE:
        figures = [float(match[1]) for line in lines if (match := re.match(form, line))]
        if figures:
            return figures[-1]
    sentences = [re.findall(_COVERAGE_SENTENCE, line) for line in lines if not re.search(_COVERAGE_LIMIT, line)]
    figures = [float(matches[-1]) for matches in sentences if matches]
    return round(sum(figures) / len(figures), 2) if figures else None
