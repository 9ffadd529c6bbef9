"""Read classification rules from the compiled catalogue and from TOML files of the user."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstuck.diagnosis.rule import MARKS, MAX_COST, BadPattern, Rule, needles, pattern_cost
from unstuck.model.errors import BadUsage
from unstuck.model.failure import Kind

if TYPE_CHECKING:
    from unstuck.diagnosis.wording import Words

CATALOG = Path(__file__).parents[1] / "catalog"
COMPILED = CATALOG / "rules.json"
USER_FILE = "unstuck.rules.toml"
KEYS = ("id", "pattern", "kind", "mark", "strength", "command", "exits", "unless", "needs", "last", "zero", "loud",
        "stream")  # fmt: skip


def catalog_rules() -> tuple[Rule, ...]:
    """Return the rules of the catalogue, compiled to JSON because TOML takes longer than a whole diagnosis."""
    return tuple(_from_json(row) for row in json.loads(COMPILED.read_text(encoding="utf-8"))["rules"])


def catalog_guidance() -> dict[str, str]:
    """Return the advice for each kind of failure."""
    guidance: dict[str, str] = json.loads(COMPILED.read_text(encoding="utf-8"))["guidance"]
    return guidance


def catalog_words() -> "Words":
    """Return the weights of words and notions that `make rules` learned."""
    from unstuck.diagnosis.wording import Words  # noqa: PLC0415  # only where a tool's own words are not enough

    learned = json.loads((CATALOG / "words.json").read_text(encoding="utf-8"))
    return Words(learned["notions"], learned["kinds"], learned["weights"])


def user_file(cwd: Path) -> Path | None:
    """Return the path of the user's own rules: `unstuck.rules.toml` here or above in the repository."""
    for folder in (cwd, *cwd.parents):
        if (folder / USER_FILE).is_file():
            return folder / USER_FILE
        if (folder / ".git").exists():
            return None
    return None


def read_rules(path: Path, *, trusted: bool = False) -> tuple[Rule, ...]:
    """Return the rules of one file. Raise BadUsage with the file, the line and the reason for a bad one."""
    import tomllib  # noqa: PLC0415  # most diagnoses need no TOML

    try:
        text = path.read_text(encoding="utf-8")
        rows = tomllib.loads(text).get("rule", [])
    except (OSError, UnicodeDecodeError) as error:
        raise BadUsage(f"{path} cannot be read: {error}.", hint="Correct it, or move it away.") from error
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        raise _refused(path, int(line[1]) if line else 1, str(error)) from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise _refused(path, 1, "`rule` must be a list of tables, each written as [[rule]]")
    starts = _starts(text)
    return tuple(
        _from_toml(path, text, row, starts[place] if place < len(starts) else 1, trusted=trusted)
        for place, row in enumerate(rows)
    )


def compile_catalog() -> str:
    """Return the text of the compiled form."""
    import tomllib  # noqa: PLC0415  # as above

    rules = [rule for path in sorted((CATALOG / "rules").glob("*.toml")) for rule in read_rules(path, trusted=True)]
    seen: set[str] = set()
    for rule in rules:
        assert rule.id not in seen, f"two rules are called {rule.id}"
        seen.add(rule.id)
    for rule in rules:
        assert seen.issuperset((*rule.unless, *rule.needs)), f"{rule.id} names a rule that does not exist"
    guidance = tomllib.loads((CATALOG / "guidance.toml").read_text(encoding="utf-8"))
    return _json([_to_json(rule) for rule in rules], guidance)


# --- one rule ------------------------------------------------------------------------------------------

DEFAULTS = Rule._field_defaults


def _from_toml(path: Path, text: str, row: dict[str, Any], start: int, *, trusted: bool) -> Rule:
    def line(key: str) -> int:
        return _line(text, start, key)

    for key in row:
        if key not in KEYS:
            near = _near(key, KEYS)
            raise _refused(
                path, line(key), f"there is no key {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")
            )
    for key in ("id", "pattern"):
        if not isinstance(row.get(key), str) or not row[key]:
            raise _refused(path, start, f"a rule needs {key!r}")
    if ("kind" in row) == ("mark" in row):
        raise _refused(path, start, "a rule needs either 'kind' or 'mark'")
    try:
        texts, also = needles(row["pattern"])
    except BadPattern as error:
        raise _refused(path, line("pattern"), f"the pattern is not supported: {error}") from error
    if not trusted and pattern_cost(row["pattern"]) > MAX_COST:
        raise _refused(
            path, line("pattern"), "the pattern's repeats can take very long together; bound them, as in \\S{1,40}"
        )
    try:
        re.compile(row.get("command", ""))
    except re.error as error:
        raise _refused(path, line("command"), f"the pattern is not supported: {error}") from error
    strength = row.get("strength", DEFAULTS["strength"])
    if not isinstance(strength, int) or not 0 < strength <= 100:  # noqa: PLR2004  # a percentage
        raise _refused(path, line("strength"), "'strength' must be a whole number from 1 to 100")
    return Rule(
        id=row["id"],
        pattern=row.get("pattern", ""),
        proves=_proves(path, row, line("kind" if "kind" in row else "mark")),
        strength=strength,
        command=row.get("command", ""),
        exits=tuple(row.get("exits", ())),
        unless=tuple(row.get("unless", ())),
        needs=tuple(row.get("needs", ())),
        last=bool(row.get("last", False)),
        zero=bool(row.get("zero", False)),
        loud=bool(row.get("loud", False)),
        stream=row.get("stream", ""),
        needles=texts,
        also=also,
    )


def _proves(path: Path, row: dict[str, Any], line: int) -> Any:
    if "mark" in row:
        if row["mark"] not in MARKS:
            raise _refused(path, line, f"there is no mark {row['mark']!r}; known are {', '.join(MARKS)}")
        return row["mark"]
    if row["kind"] not in set(Kind):
        near = _near(str(row["kind"]), [str(kind) for kind in Kind])
        more = f"; did you mean {near[0]!r}?" if near else ""
        raise _refused(path, line, f"there is no kind {row['kind']!r}{more}")
    return Kind(row["kind"])


def _to_json(rule: Rule) -> dict[str, Any]:
    row = rule._asdict()
    row["mark" if rule.proves in MARKS else "kind"] = str(row.pop("proves"))
    return {key: value for key, value in row.items() if key not in DEFAULTS or value != DEFAULTS[key]}


def _from_json(row: dict[str, Any]) -> Rule:
    mark = row.pop("mark", None)
    kind = row.pop("kind", None)
    for key in ("exits", "unless", "needs", "needles"):
        if key in row:
            row[key] = tuple(row[key])
    if "also" in row:
        row["also"] = tuple(map(tuple, row["also"]))
    return Rule(proves=mark or Kind(kind), **row)


def _json(rows: Sequence[dict[str, Any]], guidance: dict[str, str]) -> str:
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f'{{"rules": [\n{lines}\n],\n"guidance": {json.dumps(guidance, ensure_ascii=False, indent=0)}}}\n'


# --- line numbers -------------------------------------------------------------------------------------


def _starts(text: str) -> list[int]:
    """Return the line of every rule: its header, or its brace in a list of inline tables."""
    return [
        number for number, line in enumerate(text.splitlines(), 1) if re.match(r"\s*(?:\[\[\s*rule\s*\]\]|\{)", line)
    ]


def _line(text: str, start: int, key: str) -> int:
    lines: Iterable[tuple[int, str]] = enumerate(text.splitlines()[start - 1 :], start)
    return next(
        (number for number, line in lines if re.search(rf"(?:^|[\s{{,])[\"']?{re.escape(key)}[\"']?\s*=", line)), start
    )


def _near(word: str, names: Sequence[str]) -> list[str]:
    from difflib import get_close_matches  # noqa: PLC0415  # only for a mistake

    return get_close_matches(word, names, n=1)


def _refused(path: Path, line: int, why: str) -> BadUsage:
    return BadUsage(f"{path}:{line}: {why}.", hint="See the shape of a rule: unstuck docs rules")
