"""Scorers that ask a model: an invocation and its reference come in, `Question`s go to whoever asks
models, a `Score` goes out.

A judge itself does no I/O: it is given an `Ask`. `pathgauge.scorers.judges.model_client` has one
that talks to OpenAI-compatible servers.
"""
