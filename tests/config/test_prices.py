"""The section `prices`: how criteria get them, and what is wrong with them."""

from pathlib import Path

import pytest

from pathgauge import Cost, CostOfPassed, TokenPrice
from pathgauge.collector import config
from pathgauge.collector.config import active
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.core.documents import ConfigError
from pathgauge.scorers.composite.agent_view import OfAgent
from pathgauge.scorers.types import Scorer

PRICES = "prices:\n  big: {input: 2, output: 10, cached: 0.5}\n  small*: {input: '1', output: 0}\n"
BIG, SMALL = TokenPrice(2, 10, cached=0.5), TokenPrice(1, 0)
NO_PRICES = "there are no prices, which these criteria need: "


def resolve(text: str, folder: Path) -> ActiveConfig:
    file = folder / "pathgauge.yaml"
    file.write_text(text, encoding="utf-8")
    return active.resolve(config.load(file, {}))


def scorers(text: str, folder: Path) -> dict[str, Scorer]:
    return {one.name: one.scorer for one in resolve(text, folder).evaluator.criteria}


def test_every_criterion_about_cost_gets_the_prices(tmp_path: Path) -> None:
    criteria = """
criteria:
  failure: 0
  cost: 0.05
  passed: {scorer: cost_of_passed, of: [failure, cost], measure: cost}
  tokens: {scorer: cost_of_passed, of: [failure]}
  billing: {scorer: cost, agent: billing}
  own: {scorer: cost, prices: {big: {input: 1, output: 1}}}
"""
    found = scorers(PRICES + criteria, tmp_path)
    prices = {"big": BIG, "small*": SMALL}
    assert found["cost"] == Cost(prices)
    assert isinstance(found["passed"], CostOfPassed)
    assert found["passed"].prices == prices
    assert found["passed"].of[1].scorer == Cost(prices)
    assert isinstance(found["tokens"], CostOfPassed)
    assert found["tokens"].prices == {}
    assert found["billing"] == OfAgent(Cost(prices), "billing")
    assert found["own"] == Cost({"big": TokenPrice(1, 1)})


def test_a_scenario_that_overrides_a_criterion_gets_them_too(tmp_path: Path) -> None:
    (tmp_path / "references.yaml").write_text(
        "scenario: refund\nexpected_tools: [search]\ncriteria: {cost: 0.5}\n", encoding="utf-8"
    )
    resolved = resolve(f"{PRICES}references: [references.yaml]\ncriteria: {{cost: 1}}\n", tmp_path)
    (own,) = resolved.evaluator.overrides["refund"]
    assert (own.threshold, own.scorer) == (0.5, Cost({"big": BIG, "small*": SMALL}))


@pytest.mark.parametrize(
    ("criteria", "names"),
    [
        ("{cost: 1}", "cost"),
        ("{dear: {scorer: cost, agent: billing}}", "dear"),
        ("{failure: 0, usd: {scorer: cost_of_passed, of: [failure], measure: cost}}", "usd"),
        ("{failure: 0, tokens: {scorer: cost_of_passed, of: [failure]}}", ""),
        ("{cost: {prices: {big: {input: 1, output: 1}}}}", ""),
    ],
)
def test_without_prices_there_is_a_warning(criteria: str, names: str, tmp_path: Path) -> None:
    expected = (f"{NO_PRICES}{names}",) if names else ()
    assert resolve(f"criteria: {criteria}\n", tmp_path).warnings == expected
    assert resolve(f"{PRICES}criteria: {criteria}\n", tmp_path).warnings == ()


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("{big: {input: 1}}", "1:15: prices.big.output: found nothing, expected this key"),
        ("{big: {input: -1, output: 1}}", "1:23: prices.big.input: found -1, expected"),
        ("{big: {input: 1, output: 1, cache: 1}}", "prices.big.cache: found an unknown key"),
        ("{big: 1}", "1:15: prices.big: found 1, expected a mapping"),
    ],
)
def test_a_price_that_is_none_is_reported_with_its_place(
    written: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(f"prices: {written}\n", tmp_path)
    assert problem in str(caught.value)


def test_an_empty_section_has_no_prices(tmp_path: Path) -> None:
    assert scorers("prices:\ncriteria: {cost: 1}\n", tmp_path) == {"cost": Cost()}


@pytest.mark.parametrize(
    ("redaction", "warns"),
    [
        ("{content: false}", True),
        ("{tenants: {a: {content: false}}}", True),
        ("{}", False),
        ("false", False),
    ],
)
def test_redaction_of_content_removes_the_attributes_that_a_span_query_needs(
    redaction: str, warns: bool, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("0123456789abcdef0123456789abcdef", encoding="utf-8")
    (tmp_path / "token").chmod(0o600)
    text = f"""
auth: {{tenants: {{a: {{token_file: token}}}}}}
redaction: {redaction}
criteria:
  failure: 0
  by_name: {{scorer: has_matching_span, query: {{name_equals: x}}}}
  by_attribute: {{scorer: has_matching_span, query: {{has_attribute_keys: [x]}}}}
"""
    expected = (
        "redaction with content: false removes unknown attributes, so these criteria may not find"
        " those that they look for: by_attribute",
    )
    assert resolve(text, tmp_path).warnings == (expected if warns else ())
