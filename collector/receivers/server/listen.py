"""Takes an address: an endpoint comes in, a listening socket goes out, or an error in plain words."""

from __future__ import annotations

import socket

from pathgauge.collector.core.documents.quantities import Endpoint


def listen(endpoint: Endpoint) -> socket.socket:
    """Listen on TCP. Raises OSError, naming the endpoint, when the address cannot be had."""
    family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    try:
        return socket.create_server(endpoint, family=family)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while ")[
            0
        ]  # Python adds the address, which is named already
        raise OSError(error.errno, f"cannot listen on {endpoint}: {reason}") from error
