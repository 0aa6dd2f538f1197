"""Client for models on OpenAI-compatible servers, with failures, retries, budgets and cost.

The `openai` package (extra `judge`) is loaded with the first question.
"""
