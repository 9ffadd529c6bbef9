"""Real agents in a cache folder, at pinned versions: `python clis.py NAME...` installs what is missing."""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unstuck" / "conformance"
PINNED = Path(__file__).with_name("clis.txt")
UNAVAILABLE = 69


@dataclass(frozen=True, slots=True)
class Cli:
    """One agent's command line program."""

    name: str
    package: str
    version: str

    @property
    def folder(self) -> Path:
        return CACHE / f"{self.name}-{self.version}"

    @property
    def bin(self) -> Path:
        """The folder to put on PATH."""
        return self.folder / "node_modules" / ".bin"

    @property
    def installed(self) -> bool:
        return (self.bin / self.name).exists()


def pinned() -> dict[str, Cli]:
    """Read the list of agents."""
    rows = (line.split() for line in PINNED.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return {row[0]: Cli(*row) for row in rows if row}


def install(cli: Cli) -> None:
    """Install into a folder beside, then move it: a broken install is never taken for a whole one."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix=f".{cli.name}-") as beside:
        wanted = f"{cli.package}@{cli.version}"
        options = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(["npm", "install", *options, "--prefix", beside, wanted], check=True)
        told = subprocess.run(
            [Path(beside) / "node_modules" / ".bin" / cli.name, "--version"], check=True, capture_output=True, text=True
        )
        if cli.version not in told.stdout:
            raise SystemExit(f"{wanted} says that it is {told.stdout.strip()!r}.")
        shutil.rmtree(cli.folder, ignore_errors=True)
        Path(beside).rename(cli.folder)
        Path(beside).mkdir()  # for the context manager to remove


def main(names: list[str]) -> None:
    known = pinned()
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"There is no {unknown[0]} in {PINNED.name}. It has: {', '.join(known)}.")
    for cli in (known[name] for name in names):
        if cli.installed:
            say(f"{cli.name} {cli.version} is in {cli.folder}")
        elif shutil.which("npm") is None:
            say("npm is missing. Install Node 20 or later, which brings it.")
            raise SystemExit(UNAVAILABLE)
        else:
            say(f"Installing {cli.name} {cli.version} into {cli.folder} ...")
            install(cli)


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
