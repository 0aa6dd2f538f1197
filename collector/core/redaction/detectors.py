r"""Finds personal data and secrets in text by their form.

Every search takes time proportional to the length of the text. Text may be JSON with escapes, so
`\n` also counts as a line break.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pathgauge.collector.core.redaction.rules import DetectorName

Span = tuple[int, int]
"""Start and end of a finding."""

_START = r"(?:(?<!\w)|(?<=\\[nrtbf]))"
"""A position that is not inside a word."""


@dataclass(frozen=True, slots=True)
class Detector:
    """Finds one kind of personal data or secret."""

    name: DetectorName
    find: Callable[[str], list[Span]]
    """Returns the findings from left to right, without overlaps."""


def _merged(found: list[Span]) -> list[Span]:
    """The findings in order, overlapping ones merged."""
    merged: list[Span] = []
    for start, stop in sorted(found):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        else:
            merged.append((start, stop))
    return merged


_WORD_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]))"
_TOKEN_FORMS = (
    (
        "PRIVATE KEY",
        (
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9"
            r" ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
        ),
    ),
    (
        "earer",
        _WORD_START
        + r"[Bb]earer(?:\s|%20|\+|\\[nrtf])+(?=[\w.~+/%=-]*\d|[\w.~+/%=-]{20})[\w.~+/%=-]{8,}",
    ),
    ("EARER", _WORD_START + r"BEARER(?:\s|\\[nrtf])+[\w.~+/%=-]{8,}"),
    ("sk-", _WORD_START + r"sk-[A-Za-z0-9_-]{16,}"),
    ("k_live_", _WORD_START + r"[srp]k_live_[A-Za-z0-9]{10,}"),
    ("k_test_", _WORD_START + r"[srp]k_test_[A-Za-z0-9]{10,}"),
    ("AKIA", _WORD_START + r"AKIA[A-Z0-9]{12,}"),
    ("ASIA", _WORD_START + r"ASIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    *((f"gh{kind}_", _WORD_START + rf"gh{kind}_[A-Za-z0-9]{{16,}}") for kind in "pousr"),
    ("github_pat_", _WORD_START + r"github_pat_[A-Za-z0-9_]{20,}"),
    ("glpat-", _WORD_START + r"glpat-[\w-]{16,}"),
    ("xox", _WORD_START + r"xox[a-z]-[A-Za-z0-9-]{10,}"),
    ("AIza", _WORD_START + r"AIza[\w-]{30,}"),
    ("ya29.", _WORD_START + r"ya29\.[\w-]{20,}"),
    ("hf_", _WORD_START + r"hf_[A-Za-z0-9]{20,}"),
    ("npm_", _WORD_START + r"npm_[A-Za-z0-9]{30,}"),
    # A token may start inside a run of such characters. Each run is searched once, from its start.
    (
        "eyJ",
        r"(?<![\w-])(?=[\w-]{11,}+\.[\w-]{4,}+\.)[\w-]*?"
        + _WORD_START
        + r"(eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*){1,3})",
    ),
)
"""Each pattern with a text that every match contains. The finding is the group, if there is one."""

_URL_USER = re.compile(r"(?<=://)(?!\[)[^\s/:@\"'<>]{0,256}:(?!\d{1,5}/)", re.ASCII)
_NO_URL_PASSWORD = re.compile(r"[\s\"'<>]", re.ASCII)
_MAX_PASSWORD_CHARACTERS = 256

_AUTHORITY_END = re.compile(r"[\s\"'<>/?#,;\\]", re.ASCII)

_BASIC = re.compile(
    _WORD_START + r"(?:[Bb]asic|BASIC)(?:\s|%20|\\[nrtf])+([A-Za-z0-9+/]{6,})={0,2}", re.ASCII
)

_VALUE = r"[^\s\"'\\&,;<>\[\]{}()=]"
_ASSIGNED = re.compile(
    rf"(?<![=!])=(?:[ \t]|\\t)*(?:\\?[\"'])?((?={_VALUE}*\d|{_VALUE}{{20}}){_VALUE}{{6,}}={{0,2}})"
)
"""The value of an assignment, if it is longer than a word or has a digit."""
_QUOTED = re.compile(
    r"(?<![=!])=(?:[ \t]|\\t)*\\?(?:\"(?P<double>[^\"\\\n]{6,256})\\?\""
    r"|'(?P<single>[^'\\\n]{6,256})\\?')"
)
"""The same in quotes, which may hold blanks and other characters that end a value elsewhere."""
_LONGER_THAN_A_WORD = re.compile(r"(?!\[(?:token|email|card|phone|hash)[:\]])(?:.*\d|.{20})")
"""Also refuses what is redacted already."""
_SECRETS = (
    "secret",
    "token",
    "password",
    "passwd",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "private_key",
)
"""Suffixes of names of variables that hold secrets."""
_MAX_NAME_CHARACTERS = 24
"""How much text before `=` is compared with the suffixes."""

_TOKENS = tuple((hint, re.compile(pattern, re.ASCII)) for hint, pattern in _TOKEN_FORMS)

_EMAIL = re.compile(
    r"(?:(?<![\w.+\\-])|(?<=\\[nrtbfu]))[\w.+-]++(?:@|%40)"
    r"(?:[\w-]+\.)+(?:xn--[\w-]+|[^\W\d_]{2,63})"
)
"""The local part must not start inside a word, so that a long word without @ is searched once."""

_QUOTED_EMAIL = re.compile(
    r"\\?\"(?:[^\"\\\n]|\\[rtbf]){1,64}\\?\"@(?:[\w-]+\.)+(?:xn--[\w-]+|[^\W\d_]{2,63})"
)

_NON_ASCII = re.compile(r"[\u2007-\u2015\u202f\u2212\u3000\uff0b-\uff19]")
_TO_ASCII = str.maketrans(
    {chr(0xFF10 + digit): str(digit) for digit in range(10)}
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\uff0d", "-")
    | dict.fromkeys("\u2007\u2008\u2009\u200a\u202f\u3000", " ")
    | {"\uff0b": "+"}
)
"""ASCII digits, hyphens and spaces for their Unicode variants, one character each."""

_NUMBER = re.compile(r"[+(\d][\d +()./\xa0-]{6,}", re.ASCII)
"""Text that may be a card or telephone number. Fast, because it starts with a character set."""

_CARD = re.compile(rf"{_START}(?<!\d[.,])[2-6]\d{{3}}(?:[ .\xa0-]?\d){{9,15}}", re.ASCII)
_GROUP = re.compile(r"\d+", re.ASCII)
_CARD_DIGITS = range(13, 20)
_DOUBLED = bytes.maketrans(b"0123456789", b"0246813579")

_WITH_COUNTRY = re.compile(
    r"\+(?:(?<![\w+]\+)|(?<=\\[nrtbf]\+))"
    r"(?:[1-9](?>(?:[ ()/\xa0-]{0,3}\d){7,14})(?!\d|[.,]\d)"
    r"|[1-9]\d{0,2}(?>(?:\.\d{2,4}){2,5})(?![.\d]))",
    re.ASCII,
)
_IN_GROUPS = re.compile(
    rf"{_START}(?:(?<!\w-)|(?<=\\[nrtbf]-))(?<!\d[.,/])(?:"
    r"00[1-9]\d{0,2}[ /-](?:\d[ /-]?){6,12}\d"  # 00 and the country code
    r"|(?:1[ .-])?(?:\([2-9]\d{2}\)[ .-]?|[2-9]\d{2}[.-])[2-9]\d{2}[ .-]\d{4}"  # North America
    r"|(?<!\d )(?:1 )?[2-9]\d{2} [2-9]\d{2} \d{4}(?! \d)"
    # National numbers with their leading 0
    r"|(?<!\d )(?!\d\d[/-]\d\d[/-]\d)\(?0[1-9]\d{0,3}\)?(?>(?:[ /-]\d{2,4}){2,5})(?! \d)"
    r"|\(?0[1-9]\d{1,3}\)?[ /-]\d{5,8}"
    r")(?!\w|-\w|[.,:/]\d)",
    re.ASCII,
)
_PHONE_DIGITS = range(8, 16)
_NATIONAL_DIGITS = range(9, 13)


def _tokens(text: str) -> list[Span]:
    """Secrets with a known prefix, credentials and assignments."""
    found = [
        match.span(pattern.groups)
        for hint, pattern in _TOKENS
        if hint in text
        for match in pattern.finditer(text)
    ]
    if "://" in text:
        found += _url_credentials(text)
    if "asic" in text or "BASIC" in text:
        found += (match.span() for match in _BASIC.finditer(text) if _is_basic(match[1]))
    if "=" in text:
        found += _assigned(text)
    if found:
        return _merged(found)
    return found


def _assigned(text: str) -> Iterator[Span]:
    """Values that are assigned to names of secrets."""
    for match in _ASSIGNED.finditer(text):
        if _is_secret(_before(text, match)):
            yield match.span(1)
    for match in _QUOTED.finditer(text):
        quote = match.lastgroup or ""
        if _LONGER_THAN_A_WORD.match(match[quote]) and _is_secret(_before(text, match)):
            yield match.span(quote)


def _before(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - _MAX_NAME_CHARACTERS) : match.start()]


def _url_credentials(text: str) -> Iterator[Span]:
    """User and password before the `@` of a URL. One pattern for both would try each `://` of a
    long text with 256 characters, and hold the interpreter meanwhile.
    """
    stop = 0
    for user in _URL_USER.finditer(text):
        start, password = user.span()
        at = text.find("@", password, password + _MAX_PASSWORD_CHARACTERS + 1)
        if start >= stop and at > password and not _NO_URL_PASSWORD.search(text, password, at):
            stop = _last_at(text, at)
            yield start, stop


def _last_at(text: str, at: int) -> int:
    """The last `@` before the host: many write a password with an `@` as it is."""
    limit = at + 1 + _MAX_PASSWORD_CHARACTERS
    end = _AUTHORITY_END.search(text, at + 1, limit)
    return text.rfind("@", at, end.start() if end else limit)


def _is_basic(encoded: str) -> bool:
    """Whether this encodes a user name and a password."""
    return b":" in binascii.a2b_base64(encoded[: len(encoded) // 4 * 4])


def _is_secret(variable: str) -> bool:
    """Whether text ends with the name of a variable that holds a secret."""
    return variable.replace(r"\t", " ").rstrip(" \t").lower().endswith(_SECRETS)


def _emails(text: str) -> list[Span]:
    """E-mail addresses, including those in URLs."""
    found: list[Span] = []
    if "@" in text or "%40" in text:
        found = [match.span() for match in _EMAIL.finditer(text)]
    if '"@' not in text:
        return found
    return _merged(found + [match.span() for match in _QUOTED_EMAIL.finditer(text)])


def _to_ascii(text: str) -> str:
    """The text with digits, hyphens and spaces in ASCII, at the same positions."""
    if text.isascii() or not _NON_ASCII.search(text):
        return text
    return text.translate(_TO_ASCII)


def _cards(text: str) -> list[Span]:
    """Payment card numbers: 13 to 19 digits, in groups or not, with a valid check digit. Other
    numbers may precede or follow.
    """
    text, found = _to_ascii(text), []
    for number in _NUMBER.finditer(text):
        at = number.start()
        while match := _CARD.search(text, at, number.end() + 1):
            end = _card_end(text, match)
            if end is not None:
                found.append((match.start(), end))
            at = end or match.start() + 4
    return found


def _card_end(text: str, match: re.Match[str]) -> int | None:
    """The end of the longest card number that starts there and consists of whole groups."""
    digits, ends = "", []
    for group in _GROUP.finditer(text, match.start(), match.end()):
        digits += group[0]
        ends.append((group.end(), len(digits)))
    ends = [(end, count) for end, count in ends if count in _CARD_DIGITS]
    if ends and _continues_word(text, ends[-1][0]):
        ends.pop()
    return next((end for end, count in reversed(ends) if _is_card(digits[:count])), None)


def _continues_word(text: str, at: int) -> bool:
    after = text[at : at + 1]
    return after.isalnum() or after == "_"


def _is_card(digits: str) -> bool:
    """Whether the check digit is valid."""
    codes = digits.encode()
    return (sum(codes[-1::-2]) + sum(codes[-2::-2].translate(_DOUBLED)) - 48 * len(codes)) % 10 == 0


def _phones(text: str) -> list[Span]:
    """Telephone numbers with a country code or in groups. A plain run of digits is not one."""
    text = _to_ascii(text)
    found = [match.span() for match in _WITH_COUNTRY.finditer(text)] if "+" in text else []
    for number in _NUMBER.finditer(text):
        for match in _IN_GROUPS.finditer(text, number.start(), number.end() + 2):
            is_national = match[0].lstrip("(")[:1] == "0" and match[0][:2] != "00"
            expected = _NATIONAL_DIGITS if is_national else _PHONE_DIGITS
            if sum(map(str.isdigit, match[0])) in expected:
                found.append(match.span())
    if found:
        return _merged(found)
    return found


DETECTORS: tuple[Detector, ...] = (
    Detector("token", _tokens),
    Detector("email", _emails),
    Detector("card", _cards),
    Detector("phone", _phones),
)
"""In the order in which they run. A detector does not see the findings of those before it."""


MIN_CHARACTERS = 6
"""The shortest text that can have a finding."""


def is_card(number: float) -> bool:
    """Whether a number is a payment card number."""
    if not 10**12 <= number < 10**19 or number != int(number):
        return False
    digits = str(int(number))
    return digits[0] in "23456" and _is_card(digits)
