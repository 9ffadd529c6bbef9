"""Check the labels of the tamper suite against real runners: honest tests keep their teeth, tampered ones lose them.

The product is broken so that exactly the first test must notice. Run by hand: ``python -m benchmarks.tamper_reality``.
"""

import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.tamper import Diff, diffs
from benchmarks.tamper_moves import first_function
from benchmarks.tamper_projects import Project, written

NOTHING_COLLECTED = 5
"""How pytest ends when it finds no test."""

ABOUT_TESTS = frozenset({"deleted", "hidden", "emptied", "skipped", "moved", "restyled", "extracted"})
"""Categories that change tests and leave the product alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reality:
    """What real runs said about one diff: whether it notices the broken product, before and after."""

    name: str
    honest: bool
    noticed_before: bool
    noticed_after: bool

    @property
    def label_holds(self) -> bool:
        return self.noticed_before and self.noticed_after == self.honest


def observe(diff: Diff) -> Reality | None:
    """Run the tests of both sides against a broken product; None where no runner is at hand."""
    before, after = _is_green(broken(diff.base)), _is_green(_with_product(diff.changed, broken(diff.base)))
    if before is None or after is None:
        return None
    return Reality(name=diff.name, honest=diff.honest, noticed_before=not before, noticed_after=not after)


def sample(step: int = 25) -> Iterator[Diff]:
    """Give every so many of the diffs that a runner at hand can judge."""
    runnable = [
        diff
        for diff in diffs()
        if diff.category in ABOUT_TESTS and (diff.base.language == "python" or diff.base.style == "node") and "to jest" not in diff.name
        and not diff.name.endswith(("to vitest", "to mocha")) and "," not in diff.name
    ]  # fmt: skip
    yield from runnable[::step]


def broken(project: Project) -> Project:
    """Make the first function wrong for the first sample only."""
    function = first_function(project)
    names = function.params.split(", ")
    inputs = function.samples[0].inputs
    if project.language == "python":
        head, wrong = (
            f"def {function.name}({function.params}):\n",
            f"    if ({', '.join(names)},) == {inputs!r}:\n        return 'wrong'\n",
        )
    else:
        head = f"export function {function.name}({function.params}) {{\n"
        wrong = f"  if (JSON.stringify([{', '.join(names)}]) === JSON.stringify([{', '.join(map(written, inputs))}])) return 'wrong';\n"
    return project.edit(project.product, lambda text: text.replace(head, head + wrong))


def _with_product(project: Project, source: Project) -> Project:
    return replace(project, files={**project.files, source.product: source.text(source.product)})


def _is_green(project: Project) -> bool | None:
    node = shutil.which("node")
    with tempfile.TemporaryDirectory(prefix="unstuck-tamper-") as scratch:
        for path, text in project.files.items():
            place = Path(scratch) / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        if project.language == "python":
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
        elif node is not None and project.style == "node":
            if project.test not in project.files:
                return True
            command = [node, "--test", project.test]
        else:
            return None
        ended = subprocess.run(command, cwd=scratch, capture_output=True, timeout=60, check=False)
    return ended.returncode in {0, NOTHING_COLLECTED}


def main() -> int:
    """Observe the sample and print what came of it."""
    seen = [reality for diff in sample() if (reality := observe(diff)) is not None]
    wrong = [reality for reality in seen if not reality.label_holds]
    counts = Counter(("honest" if reality.honest else "tampering", reality.label_holds) for reality in seen)
    for (kind, holds), count in sorted(counts.items()):
        print(f"{kind}: {count} {'as labelled' if holds else 'not as labelled'}")  # noqa: T201 - this is the program's output
    for reality in wrong:
        print(f"not as labelled: {reality}")  # noqa: T201 - as above
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
