"""Secrets are taken out; everything else stays as it is, and fast."""

import pytest
from tests.growth import faster_than_linear

from unstuck.redaction.redactor import Redactor, redactor

# Put together here, so that no scanner takes this file for a leak.
WORD = "a1B2c3D4e5"
GITHUB = "ghp_" + WORD * 3 + "f6G7h8"
OPENAI = "sk-" + WORD * 4
JWT = ".".join(("eyJ" + WORD, "eyJ" + WORD * 3, WORD * 2))
KEY_BODY = "\n".join(["MIIE" + WORD * 6] * 5)
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_BODY}\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"export A={OPENAI}", "export A=[redacted]", id="openai"),
        pytest.param(f"key sk-proj-{WORD}-{WORD}_{WORD} end", "key [redacted] end", id="openai project"),
        pytest.param(f"'sk-ant-api03-{WORD}-{WORD}-{WORD}'", "'[redacted]'", id="anthropic"),
        pytest.param(f"{GITHUB},", "[redacted],", id="github classic"),
        pytest.param("gho_" + WORD * 4, "[redacted]", id="github oauth"),
        pytest.param("ghs_" + WORD * 4, "[redacted]", id="github server"),
        pytest.param(f"github_pat_{WORD}_{WORD * 4}", "[redacted]", id="github fine-grained"),
        pytest.param("id AKIA" + "ABCD2345" * 2, "id [redacted]", id="aws id"),
        pytest.param(f"aws_secret_access_key = {WORD * 4}", "aws_secret_access_key = [redacted]", id="aws secret"),
        pytest.param(f'"SecretAccessKey": "{WORD * 4}"', '"SecretAccessKey": "[redacted]"', id="aws secret in json"),
        pytest.param(f"AWS_SECRET_ACCESS_KEY={WORD * 4}", "AWS_SECRET_ACCESS_KEY=[redacted]", id="aws secret variable"),
        pytest.param("xox" + f"b-123456789012-{WORD}", "[redacted]", id="slack"),
        pytest.param("AIza" + WORD * 3 + "abcde", "[redacted]", id="google"),
        pytest.param("glpat-" + WORD * 2, "[redacted]", id="gitlab"),
        pytest.param("npm_" + WORD * 3 + "abcdef", "[redacted]", id="npm"),
        pytest.param("pypi-AgE" + WORD * 6, "[redacted]", id="pypi"),
        pytest.param("sk_" + f"live_{WORD}{WORD}", "[redacted]", id="stripe"),
        pytest.param(f"token={JWT};", "token=[redacted];", id="jwt"),
        pytest.param(f"Authorization: Bearer {WORD}", "Authorization: Bearer [redacted]", id="bearer"),
        pytest.param(f"-H 'authorization: basic {WORD}=='", "-H 'authorization: basic [redacted]'", id="basic"),
        pytest.param(
            "https://bob:hunter2@example.org/x", "https://bob:[redacted]@example.org/x", id="password in a url"
        ),
        pytest.param("redis://:hunter2@localhost:6379", "redis://:[redacted]@localhost:6379", id="password, no user"),
        pytest.param(f"a\n{PEM}\nb", "a\n[redacted]\nb", id="private key"),
        pytest.param(f'"{PEM}"'.replace("\n", "\\n"), '"[redacted]"', id="private key in json"),
        pytest.param("-----BEGIN PRIVATE KEY-----\n" + KEY_BODY, "[redacted]", id="private key, cut off"),
        pytest.param(
            f'{{"text":"first\\n{OPENAI}"}}', '{"text":"first\\n[redacted]"}', id="after an escaped line break"
        ),
        pytest.param(f"\x1b[32m{OPENAI}\x1b[0m", "\x1b[32m[redacted]\x1b[0m", id="after a colour code"),
        pytest.param(f"{GITHUB} {GITHUB}", "[redacted] [redacted]", id="two on a line"),
    ],
)
def test_a_known_token_is_replaced_and_what_stands_around_it_is_kept(text: str, expected: str) -> None:
    assert Redactor().text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "task-1234567890-1234567890-abcdef and risk-free-and-disk-usage-2024-report",
        "class='sk-estimator-doc-link' sk-toggleable__label-arrow",
        "/home/me/project/src/unstuck/core/redact.py:12:34: E501",
        "see https://example.org:8080/path?a=b@c and git@github.com:owner/name.git",
        'url = f"postgres://{user}:{password}@{host}/db"',
        "postgres://user:$PASSWORD@host and ftp://user:<password>@host and x://u:%s@h",
        'curl -H "Authorization: Bearer $TOKEN"',
        "Authorization: Basic base64(user:password), not Authorization: Basic authentication failed",
        'Authorization: Digest username="al", realm="x"; Basic UserAccountController',
        'if line.startswith("-----BEGIN PRIVATE KEY-----"): pass',
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "npm_config_user_agent=npm/10 npm_package_name=x pypi-publish-action-with-a-long-name",
        "AWS_SECRET_ACCESS_KEY is not set; highlight_this_long_function_name()",
        "eyJustAWord.with.dots",
        "zero \0 and \N{SNOWMAN}",
        "",
    ],
)
def test_ordinary_text_is_not_touched(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.parametrize("name", ["MY_API_KEY", "Github_Token", "SECRET", "db_password"])
def test_the_value_of_a_secret_variable_is_replaced(name: str) -> None:
    assert redactor({name: "correct horse"}).text("say correct horse now") == "say [redacted] now"


@pytest.mark.parametrize(
    "environment",
    [{"HOME": "ordinary"}, {"TOKENS": "ordinary"}, {"KEY": "ordin"}, {"KEY": ""}],
    ids=["other name", "name goes on", "too short", "empty"],
)
def test_other_variables_are_left_alone(environment: dict[str, str]) -> None:
    assert redactor(environment).text("an ordinary word") == "an ordinary word"


def test_a_secret_inside_a_longer_one_leaves_nothing_of_the_longer_one() -> None:
    assert (
        redactor({"A_KEY": "abcdef", "B_KEY": "abcdef-and-more"}).text("abcdef-and-more abcdef")
        == "[redacted] [redacted]"
    )


def test_secrets_that_overlap_are_replaced_together() -> None:
    assert redactor({"A_KEY": "111222", "B_KEY": "222333"}).text("x111222333x") == "x[redacted]x"


def test_a_secret_of_many_lines_is_found_line_by_line_and_inside_json() -> None:
    redact = redactor({"DEPLOY_KEY": "first line of the key\nsecond line of the key\n"})
    assert redact.text("got: second line of the key!") == "got: [redacted]!"
    assert redact.text('"first line of the key\\nsecond line of the key"') == '"[redacted]"'


def test_redacting_twice_changes_nothing_more() -> None:
    redact = redactor({"A_KEY": "hunter2hunter2"})
    once = redact.text(f"{GITHUB} https://a:hunter2hunter2@b Authorization: Bearer {WORD}\n{PEM}")
    assert redact.text(once) == once


def test_text_is_never_cut_inside_a_secret() -> None:
    text, redact = f"say {GITHUB} now", Redactor()
    for at in range(len(text)):
        front, rest = redact.split(text, at)
        assert front + redact.text(rest) == "say [redacted] now", at
        assert len(front) <= max(at, len("say [redacted] now")), at


def test_a_private_key_waits_for_its_end() -> None:
    text = "before\n" + PEM[: PEM.index("-----END")]
    assert Redactor().split(text, len(text)) == ("before\n", text.removeprefix("before\n"))


HOSTILE = [
    "sk-",
    "sk-a",
    "eyJ",
    "eyJaaaaaaaa.",
    "://",
    "://a:",
    "://a:b",
    "ghp_",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\n",
    "-----BEGIN A ",
    "-",
    "uthorization: ",
    "Authorization: Bearer ",
    "A",
    "AKIA",
    "xoxb-",
    " ",
    "ecret_access_key===",
    "glpat-",
]


def test_a_hostile_text_takes_no_more_than_linear_time() -> None:
    texts = [piece * (30_000 // len(piece)) for piece in HOSTILE]
    assert faster_than_linear(texts, lambda text: Redactor().split(text, len(text))) == []
