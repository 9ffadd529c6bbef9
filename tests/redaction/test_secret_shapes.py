"""Secrets of every shape that the catalogue knows are taken out of every place where they stand."""

import random
import string

from scripts.compile_catalog import compile_secrets

from unstuck.redaction.redactor import Redactor, redactor
from unstuck.shipped import shipped, shipped_table

SIGNS = {
    "upper": string.ascii_uppercase + string.digits,
    "hex": "0123456789abcdef",
    "alnum": string.ascii_letters + string.digits,
    "word": string.ascii_letters + string.digits + "_-",
    "dotted": string.ascii_letters + string.digits + "_-",
    "base64": string.ascii_letters + string.digits + "+/",
    "wide": string.ascii_letters + string.digits,
}
CONTEXTS = (
    "{}",
    "export THING={}",
    '{{"thing": "{}"}}',
    "thing: {}",
    "curl https://example.org/?q={}&x=1",
    "The thing is {}, as you see.",
    '{{"text":"first\\n{}\\nlast"}}',
    "\x1b[32m{}\x1b[0m",
    "<thing>{}</thing>",
    "git clone https://{}@example.org/a.git",
)
HEX = "9f86d081884c7d659a2feaa0c55ad015"
MIXED = "aZ3kQ9xT2mB7vL1cR8wY"
NAMED = {
    f"password: {MIXED}": MIXED,
    '"password": "hunter2!x"': "hunter2!x",
    "db_password='p@ss;w0rd'": "p@ss;w0rd",
    f'{{\\"api_key\\":\\"{MIXED}\\"}}': MIXED,
    f"x-api-key: {HEX}": HEX,
    f"X-Auth-Token: {MIXED}": MIXED,
    f"Authorization: Bearer {MIXED}": MIXED,
    f"Authorization: token {HEX}": HEX,
    f"Authorization: Basic {MIXED}==": MIXED,
    f"Proxy-Authorization: Basic {MIXED}": MIXED,
    "it sends Basic YWxhZGRpbjpvcGVuc2VzYW1l": "YWxhZGRpbjpvcGVuc2VzYW1l",
    f"NPM_AUTH={MIXED}": MIXED,
    f"SECRET_KEY_BASE={HEX}{HEX}": HEX,
    f"DATADOG_API_KEY={HEX}": HEX,
    f"HEROKU_API_KEY: {HEX[:8]}-{HEX[8:12]}-4{HEX[13:16]}-a{HEX[17:20]}-{HEX[20:]}": HEX[20:],
    f"SENTRY_DSN=https://{HEX}@o1.ingest.sentry.io/2": HEX,
    f"AccountName=x;AccountKey={MIXED}{MIXED}==;EndpointSuffix=y": MIXED,
    f"Server=db;Password={MIXED};Database=d": MIXED,
    f"?sv=2022-11-02&sig={MIXED}%2B{MIXED}%3D&se=1": MIXED,
    f"https://example.org/?access_token={MIXED}&x=1": MIXED,
    f"https://maps.example.org/?key={MIXED}": MIXED,
    "postgres://ada:pa55w0rd@db/x": "pa55w0rd",
    f"https://{MIXED}:x-oauth-basic@github.com/a/b": MIXED,
    "machine example.org login ada password hunter2": "hunter2",
    "machine example.org\n  login ada\n  password hunter2\n": "hunter2",
    "db.example.org:5432:app:ada:hunter2": "hunter2",
    "*:*:*:ada:hunter2": "hunter2",
    f"Cookie: session={MIXED}; theme=dark": MIXED,
    f"Set-Cookie: sid={MIXED}; Path=/; HttpOnly": MIXED,
    f".example.org\tTRUE\t/\tTRUE\t1900000000\tsid\t{MIXED}": MIXED,
    f"//registry.npmjs.org/:_authToken={MIXED}": MIXED,
    f'"auth": "{MIXED}=="': MIXED,
    "mysql -u root -phunter22 app": "hunter22",
    "sshpass -p hunter2 ssh a@b": "hunter2",
    "docker login -u ada -p hunter22 registry": "hunter22",
    "redis-cli -h x -a hunter22 ping": "hunter22",
    f"tool --db-password {MIXED} --verbose": MIXED,
    f"curl -u ada:{MIXED} https://example.org": MIXED,
    "CREATE USER ada IDENTIFIED BY 'hunter2'": "hunter2",
    f"Client Secret {HEX}": HEX,
    f"123456789:AA{MIXED}abcdefgh1234567": f"AA{MIXED}",
    f"https://hooks.slack.com/services/T0ABCDEFG/B0ABCDEFG/{MIXED}": MIXED,
    f"https://discord.com/api/webhooks/123456789012345678/{MIXED}{MIXED}": MIXED,
    f"abc8Q~{MIXED}abcdefghijkl": MIXED,
    f"abcdefghij1234.atlasv1.{MIXED}{MIXED}{MIXED}": MIXED,
    f"{HEX}-us12": HEX,
    f"PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 2\n{MIXED}{MIXED}\n{MIXED}==\nPrivate-MAC: {HEX}{HEX}\n": MIXED,
    f"-----BEGIN OPENSSH PRIVATE KEY-----\n{MIXED}{MIXED}\n-----END OPENSSH PRIVATE KEY-----": MIXED,
    f"Unseal Key 1: {MIXED}{MIXED}": MIXED,
    f'"d": "{MIXED}{MIXED}{MIXED}"': MIXED,
    f"M{MIXED}abc.{MIXED[:6]}.{MIXED}{MIXED[:10]}": MIXED[:10],
}
ORDINARY = (
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    f'"integrity": "sha512-{MIXED}{MIXED}{MIXED}=="',
    "4b1d74f2a812365062118e67f7aa53bcf3e9c0bb",
    f'hash = "sha256:4b1d{HEX}{HEX[:28]}"',
    f"example.org/x v1.0.0 h1:EAAA{MIXED}{MIXED[:19]}=",
    f"cache key: node-modules-{HEX}",
    f'"session_id":"{HEX[:8]}-{HEX[8:12]}-{HEX[12:16]}-{HEX[16:20]}-{HEX[20:]}"',
    f"data:image/png;base64,iVBORw0KGgo{MIXED}{MIXED}{MIXED}",
    "def login(password: str, token: str | None = None) -> None:",
    "password = os.environ['DB_PASSWORD']; token = request.headers.get('x-token')",
    'help="the password must have 8 characters"',
    "tokens: 12345, total_tokens=678901234567890123",
    "Password: ********  secret: ${{ secrets.DEPLOY }}  token: <your-token>",
    "author: Ada Lovelace, keyboard: qwerty1234567890abcd, primary_key=True",
    "PASSED tests/test_token.py::test_a_secret_key_is_kept",
    "GET /v2/library/python/manifests/3.11 key_id=ABCDEF1234567890ABCD",
)


def test_every_token_of_the_catalogue_is_taken_in_every_context() -> None:
    chance, redact = random.Random(7), Redactor()
    known = 0
    offenders: list[str] = []
    for alphabet, needs in shipped_table("secrets")["tokens"].items():
        for prefix, need in needs.items():
            known += 1
            body = "".join(chance.choices(SIGNS[alphabet], k=need + 4)) + ("4A2" if alphabet == "upper" else "4a2")
            texts = [context.format(prefix + body) for context in CONTEXTS]
            offenders += [text for text in texts if body[-8:] in redact.text(text)]
    assert offenders == []
    assert known > 400


def test_what_a_name_or_a_place_gives_away_is_taken() -> None:
    redact = Redactor()
    assert [text for text, secret in NAMED.items() if secret in redact.text(text)] == []


def test_what_only_looks_a_little_like_a_secret_stays() -> None:
    redact = Redactor()
    assert [redact.text(text) for text in ORDINARY if redact.text(text) != text] == []


def test_the_value_of_a_variable_that_looks_secret_is_known_in_every_form() -> None:
    environment = {
        "NPM_AUTH": MIXED,
        "SLACK_WEBHOOK_URL": f"https://hooks.example.org/{HEX}",
        "WHATEVER": f"{MIXED}x{MIXED}",
        "DATABASE_URL": "postgres://ada:correct4horse@db/x",
        "PRIVATE_KEY_PEM": "-----BEGIN PRIVATE KEY-----\nabcdefghijklmnopqrstu\n-----END PRIVATE KEY-----",
    }
    redact = redactor(environment | {"INVOCATION_ID": HEX, "SSH_AUTH_SOCK": "/tmp/ssh-x/agent.1", "PWD": "/home/ada"})
    texts = {
        f"say {MIXED} now": MIXED,
        "bmFtZTphWjNrUTl4VDJtQjd2TDFjUjh3WQ==": "NrUTl4VDJtQjd2TDFjUj",  # base64 of name:value
        f"cut {MIXED[:9]}\n  {MIXED[9:]} in two": MIXED[9:],
        MIXED.encode().hex(): MIXED.encode().hex(),
        f"posted to https://hooks.example.org/{HEX}": HEX,
        f"x {MIXED}x{MIXED} x": MIXED,
        "connect with correct4horse": "correct4horse",
        "line abcdefghijklmnopqrstu": "abcdefghijklmnopqrstu",
    }
    assert [text for text, secret in texts.items() if secret in redact.text(text)] == []
    plain = f"{HEX} /tmp/ssh-x/agent.1 /home/ada"
    assert redact.text(plain) == plain


def test_the_compiled_table_is_that_of_the_catalogue() -> None:
    assert shipped("secrets.json") == compile_secrets()
