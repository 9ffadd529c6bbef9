"""Follow the README on real repositories: fresh clone → `unstuck init` → `unstuck go`, unattended, no file edited.

Each is the sdist or the npm package of a project that ships its tests, under git. The agent is a script whose first
attempt breaks the project and whose second one is right, so a landing shows that the gates which `init` found and proved
do guard something. Needs the package registries; prints a table.

    python scripts/try_real_repositories.py [NAME…] [--keep DIR]
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

UNSTUCK = Path(sys.executable).with_name("unstuck")
GIT = ("-c", "user.name=You", "-c", "user.email=you@example.invalid", "-c", "commit.gpgSign=false")
PYTHON = '\n\ndef was_here() -> bool:\n    """Say that somebody was here."""\n    return True\n'
SCRIPT = "\n// somebody was here\n"
AGENT = """\
import os, pathlib, subprocess, sys
path, right, wrong = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
before = subprocess.run(["git", "show", f"HEAD:{path}"], capture_output=True, text=True, check=True).stdout
path.write_text(before + (wrong if os.environ["UNSTUCK_ATTEMPT"] == "1" else right))
print("All tests pass.")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A package of a registry, and the file that the agent works on."""

    registry: str
    package: str
    file: str
    right: str
    wrong: str


SOURCES: Mapping[str, Source] = {
    "humanize": Source(registry="pypi", package="humanize==4.16.0", file="src/humanize/lists.py", right=PYTHON, wrong="\nimport\n"),
    "click": Source(registry="pypi", package="click", file="src/click/utils.py", right=PYTHON, wrong="\nimport\n"),
    "tabulate": Source(registry="pypi", package="tabulate", file="tabulate/__init__.py", right=PYTHON, wrong="\nimport\n"),
    "six": Source(registry="pypi", package="six", file="six.py", right=PYTHON, wrong="\nimport\n"),
    "minimist": Source(registry="npm", package="minimist@1.2.8", file="index.js", right=SCRIPT, wrong="\nthrow new Error('broken');\n"),
    "isarray": Source(registry="npm", package="isarray@1.0.0", file="index.js", right=SCRIPT, wrong="\nthrow new Error('broken');\n"),
    "duplexer": Source(registry="npm", package="duplexer@0.1.2", file="index.js", right=SCRIPT, wrong="\nthrow new Error('broken');\n"),
    "through": Source(registry="npm", package="through@2.3.8", file="index.js", right=SCRIPT, wrong="\nthrow new Error('broken');\n"),
}  # fmt: skip


def main() -> int:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(SOURCES)}")
    reader.add_argument("--keep", type=Path, help="leave everything there")
    asked = reader.parse_args()
    place = asked.keep or Path(tempfile.mkdtemp(prefix="unstuck-real-"))
    place.mkdir(parents=True, exist_ok=True)
    _say("| repository | set-up | gates on HEAD | init | go | attempts | landed |")
    _say("|---|---|---|---|---|---|---|")
    missed = 0
    for name in asked.names or SOURCES:
        cells = list(_tried(name, SOURCES[name], place / name))
        missed += cells[-1] != "yes"
        _say("| " + " | ".join(cells) + " |")
    if asked.keep is None:
        shutil.rmtree(place, ignore_errors=True)
    return 1 if missed else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _tried(name: str, source: Source, place: Path) -> Iterator[str]:
    yield name
    shutil.rmtree(place, ignore_errors=True)
    clone = _cloned(source, place)
    env = os.environ | {"HOME": str(place / "home"), "XDG_STATE_HOME": str(place / "state")}
    (place / "agent.py").write_text(AGENT)
    began = time.monotonic()
    init = subprocess.run([UNSTUCK, "init"], cwd=clone, env=env, capture_output=True, text=True, check=False)
    took = time.monotonic() - began
    (place / "init.log").write_text(init.stdout + init.stderr)
    settings = clone / "unstuck.toml"
    written = tomllib.loads(settings.read_text()) if settings.exists() else {}
    seen = [line[2:] for line in init.stdout.splitlines() if line.startswith("# ") and ": " in line]
    yield "; ".join(f"`{line}`" for line in written.get("workspace", {}).get("setup", ())) or "none"
    yield "; ".join(line for line in seen if line.partition(":")[0] in written.get("checks", {})) or "none"
    yield f"{took:.0f} s"
    agent = shlex.join((sys.executable, str(place / "agent.py"), source.file, source.right, source.wrong))
    began = time.monotonic()
    command = [str(UNSTUCK), "go", "Leave a mark", "--agent", agent, "--json"]
    gone = subprocess.run(command, cwd=clone, env=env, capture_output=True, text=True, check=False)
    (place / "go.log").write_text(gone.stdout + gone.stderr)
    yield f"{time.monotonic() - began:.0f} s"
    task = json.loads(gone.stdout)["tasks"]["goal"] if gone.stdout.startswith("{") else {"attempts": 0}
    yield str(task["attempts"])
    diff = _git(clone, "diff", "--name-only", "HEAD^", "HEAD") if gone.returncode == 0 else ""
    yield "yes" if diff.split() == [source.file] else f"no: exit code {gone.returncode} {diff}"


def _cloned(source: Source, place: Path) -> Path:
    """Fetch the package, put it under git, and clone it as a stranger would."""
    package, upstream, clone = place / "package", place / "upstream", place / "clone"
    package.mkdir(parents=True)
    (place / "home").mkdir()
    if source.registry == "npm":
        fetch = ["npm", "pack", "--silent", source.package]
    else:
        fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", source.package]
    subprocess.run(fetch, cwd=package, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    archive = next(package.glob("*.t*gz"))
    shutil.unpack_archive(archive, package, format="gztar", filter="data")
    next(path for path in package.iterdir() if path.is_dir()).rename(upstream)
    for built in upstream.rglob("*.egg-info"):  # no part of anybody's repository
        shutil.rmtree(built, ignore_errors=True)
    _git(upstream, "init", "-q", "-b", "main")
    _git(upstream, "add", "-A")
    _git(upstream, "commit", "-q", "-m", f"{source.package} as its registry has it")
    _git(place, "clone", "-q", str(upstream), str(clone))
    return clone


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *GIT, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
