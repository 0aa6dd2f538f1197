"""The HTTP API below `/api/v1`: results and what explains them, read-only.

`endpoints.py` lists what can be asked; routes and the OpenAPI document are made from that list.
Queries run in one thread beside the scoring, which they must never delay.
"""
