"""Text of others: which parts of it are hidden before it is told, and what is left harmless on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract.foreign import printable, scrubbed

CANARY = "cAnarY-93x"
SECRETS = (
    f"java.sql.SQLException: cannot connect to jdbc:postgresql://db/x?user=app&password={CANARY}",
    f"jdbc:oracle:thin:scott/{CANARY}@//db:1521/x is down",
    f"https://{CANARY}@sentry.io/1 answers 403",
    f"no route to amqp://guest:{CANARY}@broker:5672/",
    f'PlainLoginModule required username="u" password="{CANARY} {CANARY}";',
    f"AccountEndpoint=https://x;AccountKey={CANARY}==;Database=y",
    f"Endpoint=sb://x/;SharedAccessKeyName=a;SharedAccessKey={CANARY}",
    f"403 at https://acc.blob.core.windows.net/c?sv=2021&sig={CANARY}&se=1",
    f"fs.azure.account.key.acc.dfs.core.windows.net={CANARY} is malformed",
    f"called with --user u --db-password {CANARY} --limit 5",
    f'["--password", "{CANARY}"]',
    f"{{'user': 'u', 'api_key': '{CANARY}'}}",
    f'bad request: {{"clientSecret": "{CANARY}", "a": 1}}',
    f"Authorization: Bearer {CANARY}",
    f"redis.auth = {CANARY}",
    f"sasl.jaas.config=org.apache.X required token='{CANARY}'",
    f"-----BEGIN RSA PRIVATE KEY-----\n{CANARY}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY-----\n{CANARY}",
    f"refused: eyJhbGciOiJIUzI1NiJ9.{CANARY}{CANARY}.abc",
    f"options: Map(user -> app, sfPassword -> {CANARY}, topic -> orders)",
    f"(spark.hadoop.fs.s3a.secret.key,{CANARY})",
    f"('spark.db.password', '{CANARY}'), ('spark.x', 'y')",
    f"{{'basic.auth.user.info': 'KEY:{CANARY}', 'a': 1}}",
    f'"fs.azure.account.key.acc.dfs.core.windows.net" : "{CANARY}"',
    f"fs.azure.account.key.acc.dfs.core.windows.net = {CANARY}",
    f"no route to mongodb://app:p#/{CANARY}@db:27017/x",
    f"s3a://AKIAABCDEFGHIJKLMNOP:ab/{CANARY}@bucket/x is gone",
    f'required username="u" password="{CANARY} {CANARY}',
    f"SignatureDoesNotMatch for {CANARY}{CANARY}{CANARY}{CANARY}".replace("-", "q"),
)
HARMLESS = (
    "KeyError: 'x'",
    "No value for key: orders",
    "user@example.com is nobody; ask ops@example.com about kafka://broker:9092",
    "the password is wrong, or the token has expired",
    "Authentication failed: Invalid username or password",
    "abfss://container@account.dfs.core.windows.net/checkpoints/orders does not exist",
    "s3a://bucket/checkpoints/Orders_By_Region_And_Month_2026_version_12/offsets/17 is gone",
    "http://host:8080/checkpoints/of@somebody and http://[::1]:80/a@b are gone",
    "give a source (the Kafka one, say), its password, or a token",
    '{"signal": "SIGTERM", "author": "ann"}',
    "/tmp/Pytest0/test_that_a_file_with_a_long_name_is_told_as_it_is_0123456789/x",
    "[STREAM_FAILED] Query delays [id = 5f6e2a1c-0a5c-4b2a-9d7e-0123456789ab] terminated",
    "Fetch position FetchPosition{offset=5, offsetEpoch=Optional.empty} is out of range for orders-0",
    "image registry.example.com/flights@sha256:0d6c71f4a1c4cdb2a4f1a1b4a1c3e5f60718293a4b5c6d7e8f9 is not there",
)


@pytest.mark.parametrize("text", SECRETS)
def test_what_looks_like_a_secret_is_hidden(text: str) -> None:
    assert CANARY not in scrubbed(text)
    assert CANARY.replace("-", "q") not in scrubbed(text)
    assert "(hidden)" in scrubbed(text)
    assert scrubbed(scrubbed(text)) == scrubbed(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_a_person_needs_is_told_as_it_is(text: str) -> None:
    assert scrubbed(text) == text


@given(st.text())
def test_nothing_is_hidden_twice(text: str) -> None:
    assert scrubbed(scrubbed(text)) == scrubbed(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b[H", "␛[2J␛[H"),
        ("\x1b]8;;http://x\x1b\\ok", "␛]8;;http://x␛\\ok"),
        ("a\nb\r\tc\x07\x7f", "a␊b␍␉c␇␡"),
        ("\x9b2J", "\ufffd2J"),
        ("\u202egnirts", "\ufffdgnirts"),
        ("größe 5 µs", "größe 5 µs"),
    ],
)
def test_characters_that_a_terminal_obeys_are_shown_as_pictures(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_nothing_moves_and_nothing_turns_and_the_length_stays(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable() or not any(ord(char) < 0xA0 and not char.isprintable() for char in shown)
    assert len(shown) == len(text)
    assert printable(text, lines=True).splitlines() == [printable(line) for line in text.split("\n")] or (
        text.endswith("\n") or not text
    )
