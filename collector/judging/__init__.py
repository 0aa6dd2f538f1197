"""Judges beside the pipeline: evaluations wait in a queue until models have judged them."""
