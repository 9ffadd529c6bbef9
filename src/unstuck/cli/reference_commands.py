"""Edge: `docs`, `config`, `completion` and `bench`: the reference that is shipped, the settings that hold here, help for shells, the benchmarks of a checkout."""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import click
from click.shell_completion import get_completion_class

from unstuck.app.config_file import meanings
from unstuck.cli import COMPLETE, json_option, say
from unstuck.cli.terminal_text import cut
from unstuck.model.errors import BadUsage, Unavailable
from unstuck.shipped import pages, shipped_in

if TYPE_CHECKING:
    from unstuck.app.settings import Setting

Shell = Literal["bash", "zsh", "fish"]
TITLE_CHARS = 60
ALIKE = {"resume": "run", "go": "run"}
"""Commands that print what another one does."""
WIDEST = 44
"""Columns within which the remarks beside keys stand in a line."""
CHECKOUT = Path(__file__).parents[3]


@click.command()
@click.argument("page", required=False)
@click.option("--schema", metavar="COMMAND", help="Print the JSON schema of what COMMAND prints with --json.")
def docs(page: str | None, *, schema: str | None) -> None:
    """Print a page of the documentation, or list all pages. It is that of this very version."""
    if schema is not None:
        say(_named(ALIKE.get(schema, schema.replace(" ", "-")), shipped_in("schemas"), "schema").rstrip())
        return
    known = pages()
    if page is not None:
        say(_named(page.removesuffix(".md"), known, "page").rstrip())
        return
    longest = max(map(len, known), default=0)
    for name, text in known.items():
        say(f"  {name:<{longest}}  {cut(text.partition(chr(10))[0].lstrip('# '), TITLE_CHARS)}")
    say("\nRead one: unstuck docs PAGE")
    say(f"What commands print with --json: unstuck docs --schema {'|'.join(shipped_in('schemas'))}")


def _named(name: str, known: dict[str, str], noun: str) -> str:
    if name not in known:
        from difflib import get_close_matches  # only for a mistake

        near = get_close_matches(name, known, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise BadUsage(f"There is no {noun} {name!r}.", hint=f"{meant}There are: {', '.join(known)}.")
    return known[name]


@click.command()
@click.argument("key", required=False)
@click.option("--schema", is_flag=True, help="Print the JSON schema of unstuck.toml, for editors.")
@json_option
def config(key: str | None, *, schema: bool, as_json: bool) -> None:
    """Print every key with its value, where that comes from, and its default; with KEY also what it means."""
    from unstuck.app.settings import DEFAULT, config_schema, settings_in

    if schema:
        say(json.dumps(config_schema(), indent=2))
        return
    settings, refused = settings_in(Path.cwd())
    found = [one for one in settings if key is None or f"{one.key}.".startswith(f"{key}.")]
    if refused is not None and (as_json or not found):
        raise refused
    if not found:
        raise BadUsage(f"There is no key {key!r}.", hint="See all of them: unstuck config")
    known = meanings() if key is not None or as_json else {}
    if as_json:
        say(json.dumps({"schema": 1, "settings": {one.key: _object(one, known) for one in found}}))
        return
    written = [f"{one.key} = {_value(one.value)}" for one in found]
    longest = min(max(map(len, written)), WIDEST)
    for one, line in zip(found, written, strict=True):
        default = "" if one.source == DEFAULT else f"; default {_value(one.default)}"
        say(f"{line:<{longest}}  # {one.source}{default}")
        if meaning := known.get(one.key, ""):
            say(f"    {meaning}")
    if refused is not None:
        raise refused


def _object(one: "Setting", known: Any) -> dict[str, Any]:
    meaning = known.get(one.key) or known.get(one.key.partition(".")[0], "")
    return {"value": one.value, "default": one.default, "source": one.source, "meaning": meaning}


def _value(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    return "unset" if value is None else json.dumps(value, ensure_ascii=False)


@click.command()
@click.argument("shell", type=click.Choice(get_args(Shell)))
@click.option("--print", "printed", is_flag=True, help="Print the script instead of installing it.")
def completion(shell: Shell, *, printed: bool) -> None:
    """Let SHELL complete commands and options: write its script to where the shell looks for it."""
    kind = get_completion_class(shell)
    root = click.get_current_context().find_root().command
    script = kind(root, {}, "unstuck", COMPLETE).source() if kind else ""
    if printed:
        say(script)
        return
    place, more = _place(shell)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(script, encoding="utf-8")
    say(f"Wrote {place}. It works in every new shell.")
    say(more)


def _place(shell: Shell) -> tuple[Path, str]:
    """Return the file that a shell loads by itself, and what is to be done where it does not."""
    home = Path.home()
    share = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    match shell:
        case "bash":
            place = share / "bash-completion/completions/unstuck"
            return place, f"Without the package bash-completion, add to ~/.bashrc: source {place}"
        case "zsh":
            place = Path(os.environ.get("ZDOTDIR") or home) / ".zfunc/_unstuck"
            return place, f"Once, in ~/.zshrc and before compinit: fpath+=({place.parent})"
        case "fish":
            return settings / "fish/completions/unstuck.fish", "fish finds it by itself."


def __getattr__(name: str) -> click.Command:
    """Take `bench` from the checkout that this package is run from: the wheel holds no benchmarks."""
    if name != "bench":
        raise AttributeError(name)
    if not (CHECKOUT / "benchmarks" / "command.py").is_file():
        raise Unavailable(
            "The benchmarks are not part of the installed package.",
            hint="Clone the repository, and run `make bench` there.",
        )
    if str(CHECKOUT) not in sys.path:
        sys.path.append(str(CHECKOUT))
    command: click.Command = import_module("benchmarks.command").bench
    return command
