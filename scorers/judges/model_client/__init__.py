"""Asks models on OpenAI-compatible servers: `settings.Settings` come in, an `asker.Asker` goes out,
which takes questions.

Failures, budgets and costs are handled here. The `openai` package, of the extra `judge`, is loaded
with the first question.
"""
