"""The promise under faults: what was acknowledged is scored once, whatever dies, fills up, is cut
off or is damaged around it.
"""
