"""Notes about conversations and traces that are in several paths.

Each path is read on its own, since ids may repeat in another test run. So the turns of a
conversation in another file are missing here, and the first of them there is compared with the
first turn of the reference. So are the spans of a trace: those of tools may come from another
process than those of the agent, and have no invocation of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import chain

from pathgauge.collector.offline.replay import Replayed

_MAX_NAMED = 3


def divided(replayed: Iterable[Replayed]) -> Iterator[str]:
    """One line for conversations, and one for traces, if there are such."""
    conversations: dict[Hashable, list[str]] = defaultdict(list)
    traces: dict[Hashable, list[str]] = defaultdict(list)
    replayed = list(replayed)
    scored = [set(_scored(one)) for one in replayed]
    of_agents = frozenset(chain.from_iterable(scored))
    for one, found in zip(replayed, scored, strict=True):
        for ended in one.conversations:
            key = ended.tenant, ended.conversation_id, ended.reference.scenario_id
            conversations[key].append(ended.conversation_id)
        for tenant, trace_id in found | (one.traces & of_agents):
            traces[tenant, trace_id].append(trace_id)
    yield from _note("conversation", conversations)
    yield from _note("trace", traces)


def _scored(one: Replayed) -> Iterator[tuple[str, str]]:
    """Tenant and trace id of each invocation."""
    for evaluation in one.evaluations:
        if evaluation.session is None:
            yield evaluation.invocation.tenant, evaluation.invocation.trace_id


def _note(what: str, found: Mapping[Hashable, list[str]]) -> Iterator[str]:
    names = sorted(ids[0] for ids in found.values() if len(ids) > 1)
    if not names:
        return
    listed = ", ".join(names[:_MAX_NAMED])
    if len(names) > _MAX_NAMED:
        listed += f" and {len(names) - _MAX_NAMED} more"
    yield (
        f"the same {what} is in several files, and each part is scored as if it were the whole;"
        f" give the folder of the files instead: {listed}"
    )
