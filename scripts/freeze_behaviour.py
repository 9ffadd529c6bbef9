"""Write down what `unstuck` does in eight small repositories, so that two versions of it can be compared.

    python -m scripts.freeze_behaviour --source CHECKOUT/src --python PYTHON OUT_DIR

Run it once for each version and compare with `diff -r`. Times, commits, runs and paths are replaced by fixed words.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from scripts.freeze_repositories import PROGRESS, REPOSITORIES, Repository, Workbench, task, write

FAILED_CALLS = {
    "missing_command": ("bash: line 1: gti: command not found\n", "127", "gti status"),
    "missing_module": ("Traceback (most recent call last):\nModuleNotFoundError: No module named 'yaml'\n", "1", "python3 app.py"),
    "failed_test": ("FAILED tests/test_a.py::test_add - assert 3 == 4\n1 failed, 2 passed in 0.10s\n", "1", "pytest -q"),
    "missing_file": ("cat: notes.md: No such file or directory\n", "1", "cat notes.md"),
    "port_in_use": ("OSError: [Errno 98] Address already in use: ('0.0.0.0', 8080)\n", "1", "python3 -m http.server 8080"),
    "rate_limit": ("HTTP 429 Too Many Requests\nretry-after: 30\n", "1", "curl https://api.example.org/items"),
    "full_disk": ("write error: No space left on device\n", "1", "tar xf big.tar"),
    "refused_push": ("fatal: not a git repository (or any of the parent directories): .git\n", "128", "git push"),
    "type_error": ('src/a.py:3: error: Incompatible return value type (got "str", expected "int")  [return-value]\n', "1", "mypy src"),
    "denied": ("mkdir: cannot create directory '/opt/x': Permission denied\n", "1", "mkdir /opt/x"),
}  # fmt: skip
SESSION = "\n".join(
    json.dumps(line)
    for line in (
        {"type": "system", "subtype": "init", "session_id": "s-1"},
        {"type": "result", "subtype": "success", "is_error": True, "api_error_status": 429,
         "result": "You've hit your limit", "session_id": "s-1", "total_cost_usd": 0.25},
    )
)  # fmt: skip

VOLATILE_NUMBERS = frozenset((
    "at", "seconds", "duration_seconds", "checked", "since", "began", "ended",
    "started", "heartbeat", "pid", "wait_until", "resume_at", "until", "event",
))  # fmt: skip
VOLATILE_TEXTS = (
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?([.,]\d+)?(Z|[+-]\d\d:?\d\d)?", "<time>"),
    (r"\b\d\d:\d\d:\d\d\b", "<clock>"),
    (r"\b1[789]\d{8}(\.\d+)?\b", "<moment>"),
    (r"\b\d+(\.\d+)? (s|ms|seconds?)\b", r"<n> \2"),
    (r'((?:time|duration|seconds|durationSeconds)"?[=:] ?"?)\d+(\.\d+)?(e-\d+)?', r"\1<n>"),
    (r", <n> s\b", ""),
    (r"\b\d+\.\d+s\b", "<n>s"),
    (r"\b\d+ MB are free", "<n> MB are free"),
    (r"\b(port|http\.server) \d{5}\b", r"\1 <port>"),
    (r"\bproject-[0-9a-f]{8}\b", "project-<id>"),
    (r"scripted:/tmp/frozen-\w*…", "scripted:<work>…"),
    (r"\bpid \d+", "pid <pid>"),
    (r"\b[0-9a-f]{64}\b", "<digest>"),
    (r"\b[0-9a-f]{32}\b", "<token>"),
    (r"Linux \d[\w.-]+", "Linux <version>"),
)


class Normaliser:
    """Replace what differs between two executions by fixed words."""

    def __init__(self, made: Repository) -> None:
        bench = made.bench
        self.paths = (
            (str(bench.folder), "<work>"),
            (str(bench.source.parent), "<checkout>"),
            (bench.python, "<python>"),
        )
        runs = dict.fromkeys(run for _, run, _, _ in made.events())
        self.runs = {run: f"<run{f'-{number}' if number > 1 else ''}>" for number, run in enumerate(runs, 1)}
        self.ids = re.compile(r"\b[0-9a-f]{7,40}\b")
        self.commits: dict[str, str] = {}
        """Every commit by what it is called here; also the trees and texts that name a commit, which differ with it."""
        self.in_order = made.in_order
        objects = made.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)").splitlines()
        commits = [name for name, kind in map(str.split, objects) if kind == "commit"]
        for line in made.git("log", "--no-walk=unsorted", "--format=%H %s", *commits).splitlines():
            name, _, subject = line.partition(" ")
            self.commits[name] = f"<commit: {self.text(subject, ids=False)}>"
        if (made.root / PROGRESS).exists():
            self.commits |= {name: f"<{kind}>" for name, kind in map(str.split, objects) if kind == "tree"}
            for commit in commits:
                for line in made.git("ls-tree", "-r", commit, "--", PROGRESS).splitlines():
                    self.commits[line.split()[2]] = "<progress>"

    def text(self, text: str, *, ids: bool = True) -> str:
        for path, word in (*self.paths, *self.runs.items()):
            text = text.replace(path, word)
        for pattern, word in VOLATILE_TEXTS:
            text = re.sub(pattern, word, text)
        if not self.in_order:
            text = re.sub(r"(snapshots/<run>/)\d+", r"\1<n>", text)
        return self.ids.sub(self._label, text) if ids else text

    def _label(self, match: re.Match[str]) -> str:
        return next((label for name, label in self.commits.items() if name.startswith(match[0])), match[0])

    def value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {self.text(name): self.value(part, name) for name, part in value.items()}
        if isinstance(value, list):
            return [self.value(part) for part in value]
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and key in VOLATILE_NUMBERS:
            return f"<{key}>"
        return value

    def answer(self, code: int, out: str, err: str) -> str:
        """Return an exit code and what was printed, as JSON where it is JSON."""
        try:
            parts = [json.loads(line) for line in out.splitlines()]
        except ValueError:
            parts = out.splitlines()
        content = {"exit": code, "out": self.value(parts), "err": self.text(err).splitlines()}
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def field_names(value: Any, above: str = "") -> set[str]:
    """Return the names of all fields of an event, those of inner objects behind a dot."""
    if isinstance(value, list):
        return {name for part in value for name in field_names(part, f"{above}[]")}
    if not isinstance(value, dict):
        return {above}
    return {name for key, part in value.items() for name in field_names(part, f"{above}.{key}".lstrip("."))}


def looks(made: Repository, plan: str, samples: Path) -> dict[str, list[str]]:
    """Return the commands that only look, by the names of the files that their answers are kept in."""
    tasks = made.tasks_of(made.events()[-1][1])
    asked = {
        name: [name, "--json"]
        for name in ("status", "log", "runs", "doctor", "agents", "config", "experience", "fleet", "verify")
    }
    asked |= {
        "doctor --no-run": ["doctor", "--no-run", "--json"],
        "config limits": ["config", "limits", "--json"],
        "plan": ["plan", plan, "--json"],
    }
    first = made.events()[0][1]
    for command in (["status"], ["log"], ["show", made.tasks_of(first)[0]]):
        asked[f"{command[0]} of first run"] = [*command, "--run", first, "--json"]
    for name in tasks:
        for verb in ("show", "verify"):
            asked[f"{verb} {name}"] = [verb, name, "--json"]
        asked[f"explain {name}"] = ["explain", name]
        asked[f"diff {name}"] = ["diff", name]
    for name, (_, code, line) in FAILED_CALLS.items():
        for verb in ("diagnose", "remedy"):
            asked[f"{verb} {name}"] = [
                verb,
                str(samples / f"{name}.txt"),
                "--exit-code",
                code,
                "--command",
                line,
                "--json",
            ]
    asked["agents read"] = ["agents", "read", "claude", str(samples / "session.jsonl"), "--exit-code", "1", "--json"]
    texts = (
        ["status"],
        ["log"],
        ["runs"],
        ["report"],
        ["report", "--md"],
        ["policy"],
        ["replay", "--profile", "standard"],
        ["plan", plan],
    )
    return asked | {"text " + " ".join(words).replace("/", "_"): words for words in texts}


def freeze_repository(made: Repository, out: Path) -> None:
    """Write everything down that can be seen of a repository after its runs."""
    clean, samples = Normaliser(made), made.bench.folder / "samples"
    plan = json.loads(made.events()[0][3])["plan"]
    keep(out / "runs.txt", "\n".join(clean.answer(*answer) for answer in made.runs))
    keep_events(made, clean, out)
    there = made.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()
    branches = sorted(there, key=clean.text)
    logs = [
        f"== {branch}\n" + made.git("log", "--format=%s%n%(trailers)", branch) + made.git("ls-tree", "-r", branch)
        for branch in branches
    ]
    keep(out / "branches.txt", clean.text("\n".join(logs)))
    keep(out / "work_tree_status.txt", clean.text(made.git("status", "--porcelain")))
    keep(out / "plan_after.txt", clean.text((made.root / plan).read_text() if (made.root / plan).is_file() else plan))
    for top in (made.root / ".unstuck", made.store, *(path for path in (made.root / "specs").rglob("demo"))):
        keep_files(top, clean, out / "files" / top.relative_to(made.root))
    asked = looks(made, plan, samples)
    for name, answer in zip(asked, made.bench.commands(list(asked.values()), made.root), strict=True):
        text = clean.answer(*answer)
        keep(
            out / f"{name.replace(' ', '_')}.json", text if made.in_order or "log" not in name else in_fixed_order(text)
        )


def keep_events(made: Repository, clean: Normaliser, out: Path) -> None:
    """Write the order of the journal's events, and the fields of each type."""
    names: dict[str, set[str]] = {}
    order = []
    for _, _, _, body in made.events():
        event = json.loads(body)
        names.setdefault(event["type"], set()).update(field_names(event))
        order.append(f"{event.get('task') or '-'} {event['type']}")
    if not made.in_order:
        order.sort(key=lambda line: line.split()[0])
    keep(out / "event_order.txt", "\n".join(order) + "\n")
    fields = {kind: sorted(names[kind]) for kind in sorted(names)}
    keep(out / "event_fields.json", clean.text(json.dumps(fields, indent=1)) + "\n")


def keep_files(top: Path, clean: Normaliser, out: Path) -> None:
    """Write the listing of a folder of ours, and the text of its files."""
    listing = []
    for path in sorted(top.rglob("*")):
        name = clean.text(str(path.relative_to(top)))
        if "asking" in path.parts or name.startswith(("journal.db", "look.index")):
            continue
        listing.append(f"{name}{' -> ' + clean.text(str(path.readlink())) if path.is_symlink() else ''}")
        if path.is_symlink() or not path.is_file() or "slots" in path.parts or "cache" in path.parts or name == "id":
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        with_json = path.suffix in (".json", ".sarif", ".jsonl")
        text = (
            clean.answer(0, text if path.suffix == ".jsonl" else json.dumps(json.loads(text)), "")
            if with_json
            else clean.text(text)
        )
        if path.name == "execution.log" and not clean.in_order:
            text = "".join(sorted(re.sub(r"\] \d+ ", "] <seq> ", line) for line in text.splitlines(keepends=True)))
        keep(out / name.replace("<", "").replace(">", ""), text)
    keep(out / "LISTING.txt", "\n".join(sorted(listing)) + "\n")


def in_fixed_order(answer: str) -> str:
    """Put events of tasks that ran side by side in the order of their tasks, without their numbers."""
    content = json.loads(answer)
    for line in content["out"]:
        if isinstance(line, dict):
            line["seq"] = "<seq>"
    content["out"] = sorted(
        re.sub(r'^("<clock>) +\d+', r"\1 <seq>", json.dumps(line, ensure_ascii=False)) for line in content["out"]
    )
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def freeze_help(made: Repository, out: Path) -> None:
    """Write the help of every command, and the JSON schema of each that has one."""
    main_help = made.bench.commands([["--help"]], made.root)[0][1]
    commands = [[name] for name in re.findall(r"^  ([a-z]+)  +\S", main_help, flags=re.MULTILINE)]
    commands += [["agents", "read"], ["agents", "check"]]
    answers = made.bench.commands([[*words, "--help"] for words in commands], made.root)
    for words, (_, text, _) in zip(commands, answers, strict=True):
        keep(out / "help" / f"{'_'.join(words)}.txt", text)
    keep(out / "help" / "unstuck.txt", main_help)
    with_json = [" ".join(words) for words, (_, text, _) in zip(commands, answers, strict=True) if "--json" in text]
    keep(out / "commands_with_json.txt", "\n".join(with_json) + "\n")
    clean = Normaliser(made)
    for name, answer in zip(
        with_json, made.bench.commands([["docs", "--schema", name] for name in with_json], made.root), strict=True
    ):
        keep(out / "schemas" / f"{name.replace(' ', '_')}.json", clean.answer(*answer))


def freeze_draft(made: Repository, out: Path) -> None:
    """Write what `draft` and `agents check` answer; both need an agent and change something."""
    good = task("1.1", "Write a greeting", "grep -q hello greeting.txt", "**Files**: `greeting.txt`")
    made.script({"draft": [[write("more.md", "no plan\n")], [write("more.md", f"# Greetings\n\n{good}")]]})
    clean = Normaliser(made)
    for name, words in {
        "draft": ("draft", "Greet people", "--agent", made.agent, "--yes", "-o", "more.md", "--json"),
        "agents_check": ("agents", "check", "nobody", "--json"),
    }.items():
        keep(out / f"{name}.json", clean.answer(*made.bench.commands([words], made.root)[0]))


def keep(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--source", required=True, type=Path, help="the folder that holds the package `unstuck`")
    parser.add_argument("--python", required=True, help="an interpreter that has its dependencies")
    parser.add_argument(
        "--only", choices=[make.__name__ for make in REPOSITORIES], help="look at this repository alone"
    )
    parser.add_argument("--keep-work", action="store_true", help="leave the repositories, to look at them")
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="frozen-")).resolve()
    bench = Workbench(folder, options.source.resolve(), str(Path(options.python).absolute()))
    for name, (text, _, _) in FAILED_CALLS.items():
        keep(folder / "samples" / f"{name}.txt", text)
    keep(folder / "samples" / "session.jsonl", SESSION)
    made = []
    for make in REPOSITORIES:
        if options.only in (None, make.__name__):
            sys.stderr.write(f"{make.__name__}\n")
            made.append(make(bench))
            freeze_repository(made[-1], options.out / made[-1].name)
    if options.only is None:
        freeze_help(made[-1], options.out)
        freeze_draft(made[-1], options.out)
    if options.keep_work:
        sys.stderr.write(f"{folder}\n")
    else:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
