"""Opens listening sockets, with readable errors."""

from __future__ import annotations

import ipaddress
import socket

from pathgauge.collector.core.documents.quantities import Endpoint


def listen(endpoint: Endpoint) -> socket.socket:
    """Listen on TCP, with `[::]` on all addresses of IPv4 too, as gRPC does. Raises OSError, naming
    the endpoint, when the address is unavailable.
    """
    is_ipv6 = ":" in endpoint.host
    both = is_ipv6 and _is_any(endpoint.host) and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
    try:
        return socket.create_server(endpoint, family=family, dualstack_ipv6=both)
    except OSError as error:
        # Python appends the address, which the message names already.
        reason, _, _ = (error.strerror or str(error)).partition(" (while ")
        raise OSError(error.errno, f"cannot listen on {endpoint}: {reason}") from error


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
