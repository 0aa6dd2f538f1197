"""Backfill: the pipeline over traces of the past, at their original times.

`sources` reads them from where they are kept, `slices` cuts the time into parts that fit into
memory, `timeline` runs the pipeline on a virtual clock, and `run` makes each slice durable with
everything that follows from it. Nothing of a running collector is read or changed.
"""
