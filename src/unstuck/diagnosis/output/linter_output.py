"""Read what linters, type checkers, formatters and compilers complain of, and the figures that tools sum up with."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from unstuck.diagnosis.output.tool_output import Finding, Reading, folded

REFORMATTED = "would be reformatted"
_PATH = r"(?:[A-Za-z]:[\\/])?[^\s:()\[\]'\"|]+"
_AT = re.compile(
    rf"^(?::\w+)?\s{{0,4}}({_PATH}\.\w{{1,12}}|{_PATH}/[A-Z]\w*file):(\d{{1,7}})(?::(\d{{1,5}}))?(?::| -)? +(\S.*)$"
)
_GREP = re.compile(rf"^({_PATH}\.\w{{1,12}}):(\d{{1,7}}):(?!in [`'<])([^\s\d:].*)$")
"""As `grep -n` shows lines that should not be there."""
_ROUND = re.compile(rf"^\s*({_PATH}\.\w+)\((\d+),\d+\): (?:fatal )?(error|warning) ?([A-Z]+\d+)?: (.*)$")
_LINE_COL = re.compile(rf"^({_PATH}): line (\d+), col \d+, (Error|Warning) - (.*?)(?: \((\S+)\))?$")
_MAVEN = re.compile(rf"^\[(ERROR|WARNING)\] ({_PATH}\.\w+):\[(\d+),\d+\] (.*)$")
_GITHUB = re.compile(r"^::(error|warning) (.*?)::(.*)$")
_LINKED = re.compile(rf"(?:^|: )({_PATH}\.\w+):\(\.\S+\): (undefined reference to .*)$")
_ARROW = re.compile(rf"^\s*--> ({_PATH}):(\d+):\d+$")
_ABOVE = re.compile(
    r"^(?:(error|warning)(?:\[(\w+)\])?|([A-Z]{1,8}\d{2,5}|[a-z]+(?:-[a-z]+)*)):? (?:\[\*\] |\[-\] )?(\S.*)$"
)
_LINT = re.compile(r"(?:#\[(?:warn|deny|forbid)\(|`-[DW] |index\.html#)([\w:-]+)")
_HEADING = re.compile(rf"^({_PATH}\.\w+):?$")
_ROW = re.compile(r"^ +(\d+):(\d+) +(error|warning|✖|⚠|[A-Z]{1,8}\d{2,5}) +(\S.*)$")
_WRAPPED = re.compile(r"^\[([a-z]+(?:-[a-z]+)*)\]$")
_BIOME = re.compile(rf"^({_PATH}):(\d+):\d+ ((?:lint|suppressions|assist|parse|format)\S*)(?: +FIXABLE)? +━+$")

_SEVERITY = re.compile(
    r"^(?:vet: )?(?:fatal )?(error|warning|note|info|remark|hint|information)(?:\[(\w+)\])?(?:: *| {2,}| (?=TS\d))(?:(TS\d+): )?(?:\[([\w-]+)\] )?(.*)$",
    re.IGNORECASE,
)
_CODE = re.compile(r"^(?:\[)?([A-Z]{1,8}\d{1,5})(?:\(([\w-]+)\), [^\]]*\])?(?::? (?:\[\*\] |\[-\] )?(.*))?$")
_COP = re.compile(r"^[CWEFRI]: (?:\[\w+\] )?([A-Z]\w+(?:/\w+)+): (.*)$")
_ENDING = re.compile(
    r"\s+(?:\[(?:(?:Error|Warning)/)?(-W[\w=+-]+|@?[\w/-]+)\]|\(([a-z][\w-]*(?:, ?[a-z][\w-]*)*)\)|\((report\w+)\))$|\s{2,}((?:@?[\w-]+/)?[a-z]+(?:-[a-z]+)+)$"
)
_XCTEST = re.compile(r"^error: -?\[?\w[\w.]*[. ]\w+\]? : ")
"""A test of Swift that failed, which is no finding."""
_SAID_AS = re.compile(r"\[(Error|Warning)/\S+\]$")
_NO_FINDING = re.compile(
    r"^in [\w<]|^\w+(?:Error|Exception|Warning|Exit|Interrupt|Failed)?$|^\w*Warning: |^assert\b|^\("
)

_FORMAT = (
    re.compile(r"^[Ww]ould reformat:? (\S.*)$"),
    re.compile(rf"^\[warn\] ({_PATH}\.\w+)$"),
    re.compile(rf"^Diff in ({_PATH}\.\w+?)(?::\d+:?| at line \d+:?)$"),
    re.compile(rf"^ERROR: ({_PATH}) Imports are incorrectly sorted"),
    re.compile(rf"^ {{2}}\* ({_PATH}\.exs?)$"),
)
_UNREADABLE = (
    re.compile(rf"^error: cannot (?:format|parse):? ({_PATH}):(?: (.*)|(\d+):\d+)$"),
    re.compile(rf"^\[error\] ({_PATH}\.\w+): (\w*Error: .*?)(?: \((\d+):\d+\))?$"),
)


def findings(lines: Sequence[str], *, formatter: bool) -> Reading | None:
    """Read all complaints; a note belongs to the complaint above it. A formatter may just list the files that it would change."""
    found: list[Finding] = []
    heading = ""
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        if row := _ROW.match(line):
            found += _row(heading, row) if heading else []
        elif (one := _headed(lines, number) or _placed(line) or _whole_file(line)) is not None:
            found.append(one)
        elif (code := _WRAPPED.match(line)) and found and not found[-1].rule:
            found[-1] = replace(found[-1], rule=code[1])
        elif title := _HEADING.match(line.strip() if formatter else line):
            heading = title[1]
            found += [Finding(file=heading, rule="format", message=REFORMATTED)] if formatter else []
    kept = [one for one in found if one.severity in ("error", "warning")]
    again = any(line.startswith("[ERROR] COMPILATION ERROR") for line in lines)  # Maven says everything twice
    return Reading(findings=tuple(dict.fromkeys(kept)) if again else tuple(kept)) if kept else None


def _row(heading: str, row: re.Match[str]) -> Iterator[Finding]:
    """Read a row below a file's name: eslint puts the rule at its end, ruff at its beginning."""
    rule, message, severity = row[3], row[4].removeprefix("[*] "), "error"
    if rule in ("error", "warning", "✖", "⚠"):
        severity = "warning" if rule in ("warning", "⚠") else "error"
        message, _, rule = row[4].rpartition("  ")
        message, rule = (message, rule.strip()) if message else (rule, "")
    yield Finding(file=heading, line=int(row[1]), rule=rule, severity=severity, message=folded([message]))


def _headed(lines: Sequence[str], number: int) -> Finding | None:
    """Read a complaint whose place stands below it, as rustc and ruff print it, or above, as biome does."""
    if (at := _ARROW.match(lines[number])) and number:
        above = next((line for line in reversed(lines[max(0, number - 3) : number]) if _ABOVE.match(line)), "")
        if (says := _ABOVE.match(above)) is None:
            return None
        rule = (
            says[2]
            or says[3]
            or next((found[1] for line in _block(lines, number) if (found := _LINT.search(line))), "")
        )
        return Finding(file=at[1], line=int(at[2]), rule=rule, severity=says[1] or "error", message=folded([says[4]]))
    if at := _BIOME.match(lines[number]):
        said = next((line.strip() for line in lines[number + 1 : number + 4] if line.strip()), "")
        severity = "error" if said.startswith("×") else "warning"  # noqa: RUF001  # as biome prints it
        return Finding(file=at[1], line=int(at[2]), rule=at[3], severity=severity, message=folded([said[1:]]))
    return None


def _block(lines: Sequence[str], number: int) -> Iterator[str]:
    for line in lines[number + 1 :]:
        if not line.strip() or _ARROW.match(line):
            return
        yield line


def _placed(line: str) -> Finding | None:
    """Read a complaint that stands on one line with its place."""
    if at := _ROUND.match(line):
        return Finding(file=at[1], line=int(at[2]), rule=at[4] or "", severity=at[3], message=folded([at[5]]))
    if at := _LINE_COL.match(line):
        return Finding(file=at[1], line=int(at[2]), rule=at[5] or "", severity=at[3].lower(), message=folded([at[4]]))
    if at := _MAVEN.match(line):
        return Finding(file=at[2], line=int(at[3]), severity=at[1].lower(), message=folded([at[4]]))
    if at := _GITHUB.match(line):
        return _github(at)
    if at := _LINKED.search(line):
        return Finding(file=at[1], message=folded([at[2]]))
    if at := _GREP.match(line):
        return Finding(file=at[1], line=int(at[2]), message=folded([at[3]]))
    at = _AT.match(line.removeprefix("vet: "))
    return _said(at[1], int(at[2]), at[4], exact=at[3] is not None) if at else None


def _said(file: str, line: int, text: str, *, exact: bool) -> Finding | None:
    """Tell rule, severity and message apart; a mere place with some words is a complaint only where it is exact."""
    severity, rule = "error", ""
    if _XCTEST.match(text):
        return None
    if found := _SEVERITY.match(text):
        severity, rule, text = found[1].lower(), found[2] or found[3] or found[4] or "", found[5]
    elif found := _COP.match(text):
        rule, text = found[1], found[2]
    elif found := _CODE.match(text):
        rule, text = found[1], found[3] or ""
    elif not exact or _NO_FINDING.match(text):
        return None
    if said_as := _SAID_AS.search(text):
        severity = said_as[1].lower()
    if ending := _ENDING.search(text):
        named = ending[1] or ending[2] or ending[3] or ending[4]
        rule, text = rule or named, text[: ending.start()]
    return Finding(file=file, line=line, rule=rule, severity=severity, message=folded([text]))


def _github(at: re.Match[str]) -> Finding:
    values = dict(part.partition("=")[::2] for part in at[2].split(","))
    rule = re.search(r"\((\w[\w-]*)\)", values.get("title", ""))
    number = values.get("line", "")
    message = re.sub(r"^\S+:\d+:\d+: (?:[A-Z]+\d+ )?", "", at[3].partition("%0A")[0])
    line = int(number) if number.isdigit() else None
    return Finding(
        file=values.get("file", ""), line=line, rule=rule[1] if rule else "", severity=at[1], message=folded([message])
    )


def _whole_file(line: str) -> Finding | None:
    """Read a formatter's words about a file."""
    for form in _FORMAT:
        if found := form.match(line):
            return Finding(file=found[1], rule="format", message=REFORMATTED)
    for form in _UNREADABLE:
        if found := form.match(line):
            at = found[3]
            return Finding(
                file=found[1],
                line=int(at) if at else None,
                rule="syntax",
                message=folded([found[2] or "cannot be parsed"]),
            )
    return None


_COVERAGE = (
    re.compile(r"^TOTAL\s.*?(\d+(?:\.\d+)?)%\s*$"),
    re.compile(r"^(?:ℹ |# )?[Aa]ll files +\| +(\d+(?:\.\d+)?) \|"),  # noqa: RUF001  # as the tool prints it
    re.compile(r"^total:\s+\(statements\)\s+(\d+(?:\.\d+)?)%"),
)
_SPOKEN = re.compile(r"(?i)\bcover(?:age|ed)?\b[^\n%\d]{0,40}?(\d+(?:\.\d+)?) ?%")
_LIMIT = re.compile(r"(?i)threshold|minimum|at least")
_NOUN = re.compile(
    r"(?<![\w.:/#-])(\d{1,9})[ \t]+(?:\w+[ \t]+)?(error|warning|violation|problem|offen[sc]e|issue|vulnerabilit(?:y|ies))s?\b",
    re.IGNORECASE,
)
_NOT_A_SUM = re.compile(r"(?i)fixable|correctable|\bprevious\b|\bretr(?:y|ied)")
_RATED = re.compile(r"^Your code has been rated at (-?\d+(?:\.\d+)?)/10")
_PLURAL = {"vulnerability": "vulnerabilities", "offence": "offenses"}


def figures(lines: Sequence[str]) -> Reading | None:
    """Return what is summed up; of several sums of one name the last, of several coverages their mean."""
    measures: dict[str, float] = {}
    for line in lines:
        if found := _RATED.match(line):
            measures["rating"] = float(found[1])
        for found in _NOUN.finditer(line):
            name = found[2].lower()
            if not _NOT_A_SUM.search(line[found.start() :].partition(",")[0]):
                measures[_PLURAL.get(name, name if name.endswith("ies") else f"{name}s")] = float(found[1])
    covered = _covered(lines)
    if covered is not None:
        measures["coverage"] = covered
    return Reading(measures=measures) if measures else None


def _covered(lines: Sequence[str]) -> float | None:
    for form in _COVERAGE:
        shown = [float(found[1]) for line in lines if (found := form.match(line))]
        if shown:
            return shown[-1]
    spoken = [
        float(last)
        for line in lines
        if not _LIMIT.search(line) and (all_of := _SPOKEN.findall(line))
        for last in all_of[-1:]
    ]
    return round(sum(spoken) / len(spoken), 2) if spoken else None
