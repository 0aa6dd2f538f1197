"""Receivers and metrics that ask for credentials, started once for a file of tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from support.guarded import Guarded, running


@pytest_asyncio.fixture(name="tokens", scope="module", loop_scope="module")
async def _tokens(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Guarded]:
    """They ask for tokens."""
    async for site in running(Guarded(tmp_path_factory.mktemp("tokens"), mutual=False)):
        yield site


@pytest_asyncio.fixture(name="mutual", scope="module", loop_scope="module")
async def _mutual(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Guarded]:
    """They ask for client certificates, too."""
    async for site in running(Guarded(tmp_path_factory.mktemp("mutual"), mutual=True)):
        yield site
