"""Learns from refusals which request parameters each model accepts.

There is no list of models: which one refuses what changes with each release, and gateways have
limits of their own. So every model is first asked with all parameters.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Literal, get_args

from cachetools import LRUCache

from pathgauge.scorers.judges.model_client.prompts import Prompt
from pathgauge.scorers.judges.model_client.settings import Model, StructuredOutput, TokenLimit

Parameter = Literal["temperature", "max_completion_tokens", "max_tokens", "response_format"]
"""The request parameters that can be left out or replaced."""
PARAMETERS: tuple[Parameter, ...] = get_args(Parameter)

REASONING_TOKENS = 25_000
"""Added to the maximum length of an answer for models whose reasoning counts as part of it. OpenAI
recommends this number.
"""
MAX_MODELS = 1000

_TOKEN_LIMITS: tuple[TokenLimit, ...] = get_args(TokenLimit)
_STRUCTURED_OUTPUTS: tuple[StructuredOutput, ...] = get_args(StructuredOutput)

_Limitation = Literal["temperature", "max_completion_tokens", "max_tokens"] | StructuredOutput
_log = logging.getLogger(__name__)


class AcceptedParameters:
    """What each model refused so far. Each limitation is logged once.

    At most four things of a model can be refused, so asking again after a refusal always ends.
    """

    def __init__(self, max_models: int = MAX_MODELS) -> None:
        """The models that were not asked for the longest time are forgotten beyond `max_models`."""
        self._refused: LRUCache[Model, frozenset[_Limitation]] = LRUCache(max_models)
        self._reasoning: LRUCache[Model, bool] = LRUCache(max_models)

    def fit(self, model: Model, prompt: Prompt) -> Prompt:
        """The prompt without the parameters that the model refuses."""
        refused = self._refused.get(model, frozenset())
        reasoning_tokens = REASONING_TOKENS if self._reasoning.get(model) else 0
        accepted = [one for one in _structured_outputs(prompt) if one not in refused]
        return replace(
            prompt,
            temperature=None if "temperature" in refused else prompt.temperature,
            token_limit=next(limit for limit in _TOKEN_LIMITS if limit not in refused),
            structured_output=accepted[0],
            max_tokens=prompt.max_tokens + reasoning_tokens,
        )

    def refuse(self, model: Model, sent: Prompt, parameter: Parameter) -> bool:
        """Note that the model refused a parameter of the prompt as it was sent.

        Returns whether the prompt can be sent in another form.
        """
        refused = self._refused.get(model, frozenset())
        limitation: _Limitation
        match parameter:
            case "temperature":
                limitation = parameter
            case "max_completion_tokens" | "max_tokens":
                # Without any limit, an answer could cost any amount.
                if refused & ({*_TOKEN_LIMITS} - {parameter}):
                    return False
                limitation = parameter
            case "response_format":
                limitation = sent.structured_output
        if limitation not in refused:
            self._refused[model] = refused | {limitation}
            _log.info("%s refuses %s: it is no longer sent", model.label, limitation)
        return _form(self.fit(model, sent)) != _form(sent)

    def allow_reasoning(self, model: Model) -> None:
        """Note that the model needs tokens for reasoning besides those for the answer."""
        if not self._reasoning.get(model):
            _log.info("%s reasons: it gets %d tokens more", model.label, REASONING_TOKENS)
        self._reasoning[model] = True


def _form(prompt: Prompt) -> tuple[float | None, TokenLimit, StructuredOutput]:
    """Everything that a refusal can change."""
    return prompt.temperature, prompt.token_limit, prompt.structured_output


def _structured_outputs(prompt: Prompt) -> tuple[StructuredOutput, ...]:
    """The kind of the prompt, and the less strict ones. Every server accepts the last one."""
    return _STRUCTURED_OUTPUTS[_STRUCTURED_OUTPUTS.index(prompt.structured_output) :]
