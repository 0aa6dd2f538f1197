"""Sockets, connection limits and the ASGI server that HTTP receivers and pages share."""
