"""Learns references from many runs: what varies between good runs becomes a matcher, an optional
step, a free order or an alternative.

Some of the runs are bad, and nothing says which. So every rule first sets aside rare deviations, up
to the share of bad runs that is expected (`minority`), and then learns what accepts all others.
"""
