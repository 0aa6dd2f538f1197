"""`pathgauge demo`: example agents that export real OTLP and regress on purpose, and a live table
of their scores.
"""
