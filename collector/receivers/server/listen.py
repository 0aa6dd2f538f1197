"""Opens listening sockets, with readable errors.

A name stands for all of its addresses, as for gRPC: a client may try only the first one, which for
`localhost` is usually that of IPv6.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from contextlib import ExitStack

from pathgauge.collector.core.documents.quantities import Endpoint

_ATTEMPTS = 8
"""How many free ports are tried until one is free at all addresses."""
_NOT_HERE = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""A name may have an address that this machine has not, such as one of IPv6 in a container."""


def listen(endpoint: Endpoint) -> list[socket.socket]:
    """Listen on TCP at all addresses of the host, with `[::]` on all of IPv4 too, as gRPC does. All
    sockets have the same port. Raises OSError, naming the endpoint, when an address is unavailable.
    """
    try:
        hosts = _hosts(endpoint)
        attempts = 1 if endpoint.port or len(hosts) == 1 else _ATTEMPTS
        while True:
            attempts -= 1
            try:
                return _listen(hosts, endpoint.port)
            except OSError as error:
                if not attempts or error.errno != errno.EADDRINUSE:
                    raise
    except OSError as error:
        # Python appends the address, which the message names already.
        reason, _, _ = (error.strerror or str(error)).partition(" (while ")
        raise OSError(error.errno, f"cannot listen on {endpoint}: {reason}") from error


def _hosts(endpoint: Endpoint) -> list[str]:
    """The addresses of the host; an address as it is."""
    try:
        ipaddress.ip_address(endpoint.host)
    except ValueError:
        found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(address[0]) for *_, address in found))
    return [endpoint.host]


def _listen(hosts: list[str], port: int) -> list[socket.socket]:
    """Raises OSError if an address is in use, or if this machine has none of them."""
    with ExitStack() as opened:
        listeners: list[socket.socket] = []
        for last, host in enumerate(hosts, 1 - len(hosts)):
            try:
                listener = opened.enter_context(_listen_at(host, port))
            except OSError as error:
                if error.errno in _NOT_HERE and (listeners or last):
                    continue
                raise
            port = listener.getsockname()[1]
            listeners.append(listener)
        opened.pop_all()
        return listeners


def _listen_at(host: str, port: int) -> socket.socket:
    is_ipv6 = ":" in host
    both = is_ipv6 and _is_any(host) and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
    return socket.create_server((host, port), family=family, dualstack_ipv6=both)


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
