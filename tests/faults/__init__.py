"""The guarantees under faults: acknowledged spans are scored once, whatever crashes, fills up or is
damaged.
"""
