"""Scorers that ask a model: an invocation and its reference come in, `Question`s go to whoever asks models, a `Score` goes out.

A judge itself does no I/O: it is given an `Ask`. `scorers.judges.asking` has one that talks to OpenAI-compatible servers.
"""
