"""Read figures that a tool sums up with: coverage, and how many errors, warnings or violations there are."""

import re
from collections.abc import Sequence

from unstuck.diagnosis.readings.values import Reading

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
