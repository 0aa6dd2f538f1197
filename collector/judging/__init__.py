"""Judges beside the pipeline: evaluations that wait for them come in, results go out. The one who
asks models is handed in.
"""
