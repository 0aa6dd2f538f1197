"""Asks models on OpenAI-compatible servers: `Settings` come in, an `Asker` goes out, which takes questions.

Failures, budgets and costs are handled here. The `openai` package, of the extra `judge`, is loaded with the first question.
"""

from scorers.judges.asking.asker import Asker
from scorers.judges.asking.budget import Budget
from scorers.judges.asking.observing import Observer
from scorers.judges.asking.settings import Limits, Model, Price, Provider, Settings

__all__ = ["Asker", "Budget", "Limits", "Model", "Observer", "Price", "Provider", "Settings"]
