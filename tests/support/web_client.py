"""A browser without scripts: the pages over a store, in the process of the test."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Any

from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from pathgauge import ToolTrajectoryAvgScore
from pathgauge.collector.api.authorization import Authorization
from pathgauge.collector.api.query_thread import QueryThread
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.evidence.failures import with_failure
from pathgauge.collector.service.web.app import create_app
from pathgauge.collector.web.app import routes
from support.evaluated import evaluation

ORIGIN = "http://testserver"
_HIDDEN = re.compile(r"<(title|svg|select)\b.*?</\1>|<[^>]*>", re.DOTALL)


def site(
    found: Sources,
    authorization: Authorization | None = None,
    trace_url: str | None = None,
    dashboard_url: str | None = None,
) -> TestClient:
    """Without `authorization`, everything is open. Redirects are not followed."""
    allowed = authorization or Authorization(None, None)
    pages = routes(found, allowed, QueryThread(found.is_busy), trace_url, dashboard_url)
    app = create_app(CollectorRegistry(), readers=allowed.readers, with_own_authorization=pages)
    return TestClient(app, base_url=ORIGIN, follow_redirects=False)


def text_of(page: str) -> str:
    """What a person reads, on one line."""
    return " ".join(html.unescape(_HIDDEN.sub(" ", page)).split())


def changed(
    name: str, outcome: str = "failed", /, *, turn_index: int = 0, **fields: Any
) -> Evaluation:
    """An evaluation of an invocation with other fields."""
    found = evaluation(name, outcome)
    match = replace(found.match, turn_index=turn_index)
    evaluator = Evaluator((Criterion("trajectory", ToolTrajectoryAvgScore(), 1.0),))
    return with_failure(evaluator.evaluate(replace(found.invocation, **fields), match))
