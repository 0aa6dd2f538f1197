"""Sockets, connection limits and the ASGI server, shared by HTTP receivers and pages."""
