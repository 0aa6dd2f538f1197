"""Addresses that a server may be at: an address comes in, whether it is a public one goes out."""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_OF_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")
"""Of which not all versions of Python say that it is not public."""
_OF_CLOUDS = frozenset({ipaddress.IPv4Address("168.63.129.16")})
"""Public by their number, but services of the machine's own host."""


def is_public(written: str) -> bool:
    """Whether an address belongs to the public internet, and to nobody nearby."""
    try:
        address: Address = ipaddress.ip_address(written.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        elif address in _NAT64:
            address = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        elif address not in _GLOBAL_UNICAST or address in _SIX_TO_FOUR:
            return False
    return (
        address.is_global
        and not address.is_multicast
        and address not in _OF_PROTOCOLS
        and address not in _OF_CLOUDS
    )
