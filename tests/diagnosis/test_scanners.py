"""The scanner finds what its patterns match, no pattern can stall it, and a bad rule is refused by file and line."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.growth import faster_than_linear

from unstuck.diagnosis.evidence import Evidence, plain
from unstuck.diagnosis.rule import needles
from unstuck.diagnosis.rule_files import COMPILED, catalog_rules, compile_catalog, read_rules, user_file
from unstuck.diagnosis.rulebook import Rulebook, RuleScanner, open_rulebook
from unstuck.model.errors import BadUsage
from unstuck.model.failure import Kind
from unstuck.model.text import clean

CASES = Path(__file__).parent / "cases"
RULES = tuple(rule for rule in catalog_rules() if rule.pattern)
SCANNER = RuleScanner(RULES)
TEXTS = [
    case.get("out", "") + "\n" + case.get("err", "")
    for path in sorted(CASES.glob("*.toml"))
    for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
]
WORDS = sorted({word for text in TEXTS for word in text.split() if len(word) < 40})


def lines(text: str) -> list[str]:
    return [plain(line) for line in clean(text)]


def every_match(texts: list[str]) -> set[tuple[str, int]]:
    """Return the rule and the line of all matches, with no literal text to skip a pattern by."""
    patterns = [(rule.id, re.compile(rule.pattern, re.ASCII)) for rule in RULES]
    return {(name, line) for line, text in enumerate(texts) for name, pattern in patterns if pattern.search(text)}


def matches(texts: list[str]) -> set[tuple[str, int]]:
    return {(hit.rule, hit.line) for hit in SCANNER.scan(texts)}


def test_the_literal_texts_hide_no_match_in_real_outputs() -> None:
    for text in TEXTS[::40]:
        assert matches(lines(text)) == every_match(lines(text))
    assert len(SCANNER.scan([line for text in TEXTS for line in lines(text)])) > 300


@given(
    st.lists(
        st.one_of(
            st.sampled_from(WORDS),
            st.text(max_size=12),
            st.sampled_from(["\n", ": ", "\r", "\x1b[31m", "\u017f", "\u212a"]),
        ),
        max_size=30,
    )
)
@settings(max_examples=30, deadline=None)
def test_the_literal_texts_hide_no_match_in_any_words(words: list[str]) -> None:
    texts = lines(" ".join(words))
    assert matches(texts) == every_match(texts)


BOOK = Rulebook(RULES)


@given(st.binary(max_size=2000), st.sampled_from((None, 0, 1)))
@settings(max_examples=100, deadline=None)
def test_arbitrary_bytes_never_raise(raw: bytes, code: int | None) -> None:
    text = raw.decode(errors="replace")
    BOOK.diagnose(Evidence(stdout=text, stderr=text[::-1], exit_code=code, command=text[:50]))


ODD = ["\x00" * 1000, "\ud800 error: x", "[" * 100_000, "a" * 3_000_000, "\r" * 10_000, "\x1b" * 10_000]


def test_odd_texts_are_judged_in_linear_time() -> None:
    book = Rulebook(RULES)
    assert faster_than_linear(ODD, lambda text: book.diagnose(Evidence(stdout=text, exit_code=1))) == []


def test_many_hits_are_bounded() -> None:
    flood = ["bash: x: command not found"] * 5000 + ["error: connect ECONNREFUSED"] * 5000
    assert len(SCANNER.scan(flood)) < 2000


def test_every_line_that_a_pattern_matches_holds_one_of_its_needles() -> None:
    for rule in RULES:
        assert (rule.needles, rule.also) == needles(rule.pattern), rule.id


HOSTILE = (
    "a" * 2000,
    "a:1:" * 500,
    ("x/" * 500 + ": ") * 2,
    "error: " * 280,
    "{" * 2000,
    " ".join(["1 failed,"] * 200),
    "Z_0." * 500,
)


def test_no_pattern_of_ours_takes_more_than_linear_time_on_a_hostile_line() -> None:
    slow = {
        rule.id: found
        for rule in RULES
        for scanner in [RuleScanner([rule])]
        for needle in rule.needles[:2] or ("",)
        if (found := faster_than_linear(HOSTILE, lambda line, s=scanner, n=needle: s.scan([n + line])))  # type: ignore[misc]
    }
    assert slow == {}


def test_the_compiled_catalogue_is_up_to_date() -> None:
    assert COMPILED.read_text(encoding="utf-8") == compile_catalog(), "run `make rules`"


# --- a user's own rules ---------------------------------------------------------------------------------------

BAD = {
    "unknown kind": ('id = "a"\npattern = "^x"\nkind = "test_faild"', 4, "did you mean 'test_failed'"),
    "unknown key": ('id = "a"\npattern = "^x"\nknd = "test_failed"', 4, "did you mean 'kind'"),
    "lookahead": ('id = "a"\nkind = "timeout"\npattern = "foo(?=bar)"', 4, "not supported"),
    "backreference": ('id = "a"\nkind = "timeout"\npattern = \'(fo)\\1xx\'', 4, "looks around or back"),
    "nested repeats": ('id = "a"\nkind = "timeout"\npattern = "foo(a+)+$"', 4, "for ever"),
    "ambiguous choice": ('id = "a"\nkind = "timeout"\npattern = "foo(a|aa)+$"', 4, "for ever"),
    "many repeats": ('id = "a"\nkind = "timeout"\npattern = "^a*a*a*a*b"', 4, "very long"),
    "nothing to find it by": ('id = "a"\nkind = "timeout"\npattern = \'\\w+ \\w+\'', 4, "no literal"),
    "leading dots": ('id = "a"\nkind = "timeout"\npattern = ".*foo"', 4, "starts with"),
    "not a regex": ('id = "a"\nkind = "timeout"\npattern = "(foo"', 4, "not supported"),
    "unknown group": ('id = "a"\nkind = "timeout"\npattern = \'foo (?P<colour>x)\'', 4, "captures 'colour'"),
    "no pattern": ('id = "a"\nkind = "timeout"', 1, "needs 'pattern'"),
    "strength": ('id = "a"\nkind = "timeout"\npattern = "foo"\nstrength = 300', 5, "from 1 to 100"),
    "not TOML": ('id = "a"\nkind = timeout', 3, "Invalid value"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_rule_is_refused_by_file_and_line(name: str, tmp_path: Path) -> None:
    text, line, why = BAD[name]
    path = tmp_path / "unstuck.rules.toml"
    path.write_text(f"[[rule]]\n{text}\n", encoding="utf-8")
    with pytest.raises(BadUsage) as refused:
        read_rules(path)
    assert refused.value.message.startswith(f"{path}:{line}: ")
    assert why in refused.value.message
    assert refused.value.hint


def test_a_users_own_rule_is_found_from_below_and_wins(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "unstuck.rules.toml").write_text(
        "[[rule]]\nid = 'flux'\npattern = 'flux capacitor (?P<name>\\w{1,20})'\nkind = 'environment_missing'\nstrength = 90\n",
        encoding="utf-8",
    )
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    found = open_rulebook(below).diagnose(Evidence(stdout="the flux capacitor misaligned", exit_code=42))
    assert found is not None
    assert (found.kind, found.rule, dict(found.names)) == (Kind.ENVIRONMENT_MISSING, "flux", {"name": "misaligned"})


def test_rules_above_the_repository_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / "unstuck.rules.toml").write_text("", encoding="utf-8")
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    assert user_file(tmp_path / "repo") is None
