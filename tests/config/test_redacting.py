"""The section `redaction`: its effect and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathgauge.collector import config
from pathgauge.collector.config import Config
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.core.redaction import MASK_ALL, KeyRule, Rules

AUTH = (
    "auth: {tenants: {team-a: {client_names: [a.example]}, team-b: {client_names: [b.example]}}}\n"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(text: str, **environment: str) -> Config:
    Path("p.yaml").write_text(text)
    return config.load(Path("p.yaml"), environment)


def test_a_salt_may_consist_of_digits() -> None:
    redaction = load("redaction: {salt: 1234567890123456}").redaction
    assert redaction is not None
    assert redaction.salt == "1234567890123456"


def test_nothing_is_redacted_unless_asked_for() -> None:
    assert (Config().redaction, load("redaction: false").redaction) == (None, None)


def test_an_empty_section_masks_what_the_detectors_find() -> None:
    redaction = load("redaction:").redaction
    assert redaction is not None
    assert (redaction.rules(), redaction.rules_of_tenants(), redaction.salt) == (
        Rules((), MASK_ALL, content=True),
        {},
        None,
    )


def test_the_rules_of_a_tenant_override_the_common_ones() -> None:
    text = (
        AUTH
        + """
redaction:
  attributes: [{match: "user.*", action: hash}]
  detectors: {phone: keep}
  salt: ${env:SALT}
  tenants:
    team-a: {content: false, detectors: {email: drop}}
    team-b: {attributes: [{match: "user.id", action: keep}]}
"""
    )
    redaction = load(text, SALT="0123456789abcdef").redaction
    assert redaction is not None
    hashed, kept = KeyRule("user.*", "hash"), KeyRule("user.id", "keep")
    common = {**MASK_ALL, "phone": "keep"}
    assert redaction.salt == "0123456789abcdef"
    assert redaction.rules() == Rules((hashed,), common, content=True)
    assert redaction.rules_of_tenants() == {
        "team-a": Rules((hashed,), {**common, "email": "drop"}, content=False),
        "team-b": Rules((kept, hashed), common, content=True),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "redaction: {detector: {}}",
            (
                "p.yaml:1:13: redaction.detector: found an unknown key, expected one of attributes,"
                " detectors, content, salt, tenants; did you mean 'detectors'?"
            ),
        ),
        (
            "redaction: {detectors: {emial: mask}}",
            (
                "p.yaml:1:25: redaction.detectors.emial: found an unknown key, expected one of"
                " token, email, card, phone; did you mean 'email'?"
            ),
        ),
        (
            "redaction: {detectors: {email: msk}}",
            (
                "p.yaml:1:32: redaction.detectors.email: found 'msk', expected 'keep', 'mask',"
                " 'hash' or 'drop'; did you mean 'mask'?"
            ),
        ),
        (
            "redaction: {attributes: [{match: 'user.*', action: remove}]}",
            (
                "p.yaml:1:52: redaction.attributes[0].action: found 'remove', expected 'keep',"
                " 'mask', 'hash' or 'drop'"
            ),
        ),
        (
            "redaction: {attributes: [{match: '', action: mask}]}",
            "p.yaml:1:34: redaction.attributes[0].match: found '', expected text that is not empty",
        ),
        (
            "redaction: {salt: short}",
            (
                "p.yaml:1:12: redaction: found a short salt, expected at least 16 characters, such"
                " as the output of `openssl rand -hex 16`"
            ),
        ),
        (
            AUTH + "redaction: {tenants: {team-c: {content: false}}}",
            (
                "p.yaml:2:23: redaction.tenants.team-c: found an unknown tenant, expected one of"
                " team-a, team-b; did you mean 'team-b'?"
            ),
        ),
        (
            "redaction: {tenants: {team-a: {content: false}}}",
            (
                "p.yaml:1:23: redaction.tenants.team-a: found an unknown tenant, expected none:"
                " without auth there are no tenants"
            ),
        ),
    ],
)
def test_problems_are_reported_with_their_positions(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert str(caught.value) == expected
