"""Opens listening sockets, with readable errors."""

from __future__ import annotations

import socket

from pathgauge.collector.core.documents.quantities import Endpoint


def listen(endpoint: Endpoint) -> socket.socket:
    """Listen on TCP. Raises OSError, naming the endpoint, when the address is unavailable."""
    family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    try:
        return socket.create_server(endpoint, family=family)
    except OSError as error:
        # Python appends the address, which the message names already.
        reason, _, _ = (error.strerror or str(error)).partition(" (while ")
        raise OSError(error.errno, f"cannot listen on {endpoint}: {reason}") from error
