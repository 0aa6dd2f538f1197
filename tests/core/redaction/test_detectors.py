"""What the detectors find in text, and similar text that they must not find."""

from __future__ import annotations

import re

import pytest

from pathgauge.collector.core.redaction.replace import RedactionCounts, Replacements
from pathgauge.collector.core.redaction.rules import MASK_ALL

RSA = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"


def masked(text: str) -> str | None:
    return Replacements(MASK_ALL, b"salt").text(text, RedactionCounts())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("write to alice@example.com.", "write to [email]."),
        ("a.b+c_d@sub-1.example.co.uk,x", "[email],x"),
        ("GET /u?mail=alice%40example.com&page=2", "GET /u?mail=[email]&page=2"),
        ('{"a": "line\\nalice@example.com"}', '{"a": "line\\n[email]"}'),
        ("jürgen@exämple.de", "[email]"),
        ("4111111111111111", "[card]"),
        ("4111 1111 1111 1111", "[card]"),
        ("5555-5555-5555-4444.", "[card]."),
        ("3782 822463 10005", "[card]"),
        ("30569309025904", "[card]"),
        ("4222222222222", "[card]"),
        ("3 of 4111 1111 1111 1111 12 x", "3 of [card] 12 x"),
        ("6304000000000000000", "[card]"),
        ("card:4111111111111111,", "card:[card],"),
        ("call +14155552671", "call [phone]"),
        ("+1 (415) 555-2671", "[phone]"),
        ("(415) 555-2671 or 415.555.2671", "[phone] or [phone]"),
        ("90210 415-555-2671 2 pm", "90210 [phone] 2 pm"),
        ("1-800-555-0199", "[phone]"),
        ("dial 415 555 2671 now", "dial [phone] now"),
        ("+49 30 1234567", "[phone]"),
        ("+49.171.1234.567", "[phone]"),
        ("0049 30 1234567", "[phone]"),
        ("030 1234567", "[phone]"),
        ("0171/1234567", "[phone]"),
        ("Tel 030 123 456 please", "Tel [phone] please"),
        ("06 12 34 56 78", "[phone]"),
        ("020 7946 0958", "[phone]"),
        ("tel:+33-6-12-34-56-78", "tel:[phone]"),
        ("Authorization: Bearer abc123def456", "Authorization: [token]"),
        ("bearer%20eyJabc.d3f", "[token]"),
        ("Basic dXNlcjpwYXNz", "[token]"),
        ("BASIC dXNlcjpwYXNz", "[token]"),
        ("Authorization: basic \t dXNlcjpwYXNz", "Authorization: [token]"),
        (r'{"a": "Basic\r\n dXNlcjpwYXNz"}', '{"a": "[token]"}'),
        ("key=sk-proj-abcdefghijklmnop123", "key=[token]"),
        ("sk-ant-api03-AbCdEfGhIjKlMnOp_-", "[token]"),
        ("sk_live_4eC39HqLyjWDarjtT1zdp7dc", "[token]"),
        ("AKIAIOSFODNN7EXAMPLE", "[token]"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "[token]"),
        ("github_pat_11ABCDEFG0abcdefghijkl_mnop", "[token]"),
        ("glpat-abcdefghij0123456789", "[token]"),
        ("xoxb-1234567890-abcdef", "[token]"),
        ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "[token]"),
        ("hf_abcdefghijklmnopqrstuvwxyz", "[token]"),
        (f"jwt {JWT} end", "jwt [token] end"),
        (f"id-{JWT}", "id-[token]"),
        (f"a\\n{JWT}", "a\\n[token]"),
        (f"Bearer {JWT}", "[token]"),
        (f"a {RSA} b", "a [token] b"),
        (RSA.replace("\n", "\\n"), "[token]"),
        (RSA[:50], "[token]"),
        ("postgres://user:p4ssw0rd@db:5432/x", "postgres://[token]@db:5432/x"),
        ("postgres://u:pa/ss@h/db", "postgres://[token]@h/db"),
        ("postgres://u:p@ss@w0rd@h:5432/db?x=a@b", "postgres://[token]@h:5432/db?x=a@b"),
        ("https://u:p@h1/@x,https://v:q@h2", "https://[token]@h1/@x,https://[token]@h2"),
        (
            "aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "aws_secret_access_key=[token]",
        ),
        ('export DB_PASSWORD = "hunter2!" x', 'export DB_PASSWORD = "[token]" x'),
        ('{"cmd": "API_KEY=\\"abc123de\\" run"}', '{"cmd": "API_KEY=\\"[token]\\" run"}'),
        ("/cb?a=1&client_secret=abc123==&b=2", "/cb?a=1&client_secret=[token]&b=2"),
        ("refresh_token=abcdefghijklmnopqrstu", "refresh_token=[token]"),
        ('to "john doe"@example.com.', "to [email]."),
        ("joe@example.xn--p1ai, x", "[email], x"),
        ("password =\t'abc123'", "password =\t'[token]'"),
        ("PASSWORD='my pass word 1'; ls", "PASSWORD='[token]'; ls"),
        ('api_key="sk;live,(a)&b1" x', 'api_key="[token]" x'),
        ('{"cmd": "TOKEN=\\"ab c123\\" run"}', '{"cmd": "TOKEN=\\"[token]\\" run"}'),
        (r'{"a": "password\t=\tabc123"}', r'{"a": "password\t=\t[token]"}'),
        (r'{"a": "BEARER\r\nabcd1234"}', '{"a": "[token]"}'),
        (r'{"a": "bearer\r\nabcd1234"}', '{"a": "[token]"}'),
        (r'{"a": "\"john\tdoe\"@example.com"}', '{"a": "[email]"}'),
        (r'{"a": "\n-0171/1234567"}', r'{"a": "\n-[phone]"}'),
        ("４１１１１１１１１１１１１１１１", "[card]"),
        ("4111\u20111111\u20111111\u20111111", "[card]"),
        ("4111\u202f1111\u202f1111\u202f1111", "[card]"),
        ("＋４９ ３０ １２３４５６７", "[phone]"),
        ("415\u2011555\u20112671", "[phone]"),
    ],
)
def test_personal_data_and_secrets_are_found(text: str, expected: str) -> None:
    assert masked(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "1700000000",
        "1700000000000",
        "1795230040886142051",
        "2024-05-01T10:00:00.123456+02:00",
        "01/02/2024 10:30",
        "10:30-11:45",
        "12345678-1234-1234-1234-123456789012",
        "0face9eb-0539-9814-1757-a627495253c3",
        "123e4567-e89b-12d3-a456-426614174000",
        "4bf92f3577b34da6a3ce929d0e0e4736",
        "00f067aa0ba902b7",
        "trace 4111111111111111abcdef",
        "call_12345678901234",
        "call_4111111111111111",
        "toolu_01A09q90qw90lq917835lq9",
        "chatcmpl-9a8b7c6d",
        "resp_68a1f2b3c4d5e6f7",
        "order 2024-000123",
        "1234567890",
        "4155552671",
        "9007199254740993",
        "$1,234.56",
        "1 234 567,89 €",
        "1,000,000,000",
        "2500.00 USD",
        "0.4111111111111111",
        "3.14159265358979",
        "4111111111111112",
        "1234 5678 9012 3456",
        "978-3-16-148410-0",
        "192.168.100.100",
        "10.0.0.1:8080",
        "-33.8688, 151.2093",
        "+37.774929, -122.419416",
        "2+10000000",
        "100 200 3000",
        "3000 4000 5000 6000 7000",
        "user@localhost",
        "@decorator a@b refund@v2",
        "bearer of good news, the Bearer token",
        "Basic understanding",
        "task-management-of-long-names",
        "https://example.com:8080/a@b",
        "https://[::1]:8080/a@b",
        "max_tokens=1000000",
        "token == abc12345",
        "token != abc12345",
        "password=secret",
        "password='a secret'",
        "name='John Doe 1'",
        "token = get_token(abc1)",
        "the password is long",
        '"a" @b "john doe"@example',
        "２０２４年",
    ],
)
def test_similar_text_is_not_found(text: str) -> None:
    assert masked(text) == text


def test_different_values_have_different_hashes_that_do_not_reveal_them() -> None:
    hashing = Replacements({"email": "hash"}, b"salt")
    counts = RedactionCounts()
    first, again, other = (
        hashing.text(f"from {who}@example.com", counts) for who in ("alice", "alice", "bob")
    )
    assert first is not None
    assert re.fullmatch(r"from \[email:[a-p]{16}\]", first)
    assert (again == first, other == first, counts) == (True, False, {("email", "hash"): 3})
    assert (
        Replacements({"email": "hash"}, b"pepper").text("from alice@example.com", counts) != first
    )


def test_ids_are_hashed_instead_of_masked() -> None:
    masking = Replacements(MASK_ALL, b"salt")
    alice, bob = (
        masking.text(f"{who}@example.com", RedactionCounts(), identity=True)
        for who in ("alice", "bob")
    )
    assert alice != bob


@pytest.mark.parametrize(
    "text",
    [
        "postgres://user:p4ssw0rd@db",
        "api_key=abc123def456",
        "api_key='abc 123 def 456'",
        "Bearer abc123def456",
        '"john doe"@example.com',
    ],
)
def test_a_hash_is_not_hashed_again(text: str) -> None:
    hashing = Replacements(dict.fromkeys(MASK_ALL, "hash"), b"salt")
    counts = RedactionCounts()
    once = hashing.text(text, counts)
    assert once is not None
    assert (hashing.text(once, counts), counts.total()) == (once, 1)


def test_a_detector_that_is_to_keep_or_left_out_finds_nothing() -> None:
    assert (
        Replacements({"email": "keep"}, b"").text(
            "alice@example.com +14155552671", RedactionCounts()
        )
        == "alice@example.com +14155552671"
    )


def test_a_value_is_dropped_as_a_whole() -> None:
    counts = RedactionCounts()
    assert Replacements({"card": "drop"}, b"").text("pay 4111111111111111", counts) is None
    assert counts == {("card", "drop"): 1}


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (["212-555-1234"] * 4, ":".join(["[phone]"] * 4)),
        (["212-555-1234"] * 40, "[REDACTED]"),
    ],
)
def test_numbers_that_hide_each_other_are_all_redacted(numbers: list[str], expected: str) -> None:
    """Each is found when the next one is gone."""
    assert masked(":".join(numbers)) == expected


def test_ids_with_long_chains_of_numbers_stay_different() -> None:
    masking = Replacements(MASK_ALL, b"salt")
    chains = [":".join(["212-555-1234"] * count) for count in (40, 41)]
    one, other = (masking.text(chain, RedactionCounts(), identity=True) for chain in chains)
    assert one is not None
    assert re.fullmatch(r"\[hash:[a-p]{16}\]", one)
    assert (one != other, masking.text(one, RedactionCounts(), identity=True)) == (True, one)
