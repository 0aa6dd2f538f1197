"""The MCP server: lets the model of a coding assistant ask why runs of an agent fail.

It is a client of a running collector. It asks the HTTP API with the token of its user, so that the
API alone decides who reads what, and it keeps no data and no token itself.

Everything it answers was recorded from telemetry, so that strangers may have written it. A model
could mistake it for instructions: `untrusted.py` marks it, and `shaping.py` bounds it.
"""
