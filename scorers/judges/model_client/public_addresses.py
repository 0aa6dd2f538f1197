"""Tells public internet addresses from private and special ones."""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_IETF_PROTOCOL_ASSIGNMENTS = ipaddress.IPv4Network("192.0.0.0/24")
"""Not every Python version reports this network as non-global."""
_CLOUD_HOST_SERVICES = frozenset({ipaddress.IPv4Address("168.63.129.16")})
"""Addresses in public ranges that clouds use for services of the virtual machine's host."""


def is_public(text: str) -> bool:
    """Whether an address is on the public internet. `False` for anything that is no address."""
    try:
        address: Address = ipaddress.ip_address(text.partition("%")[0])
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
        and address not in _IETF_PROTOCOL_ASSIGNMENTS
        and address not in _CLOUD_HOST_SERVICES
    )
