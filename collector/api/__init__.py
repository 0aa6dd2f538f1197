"""The HTTP API below `/api/v1`: results, what explains them, and what people say of them.

`endpoints.py` lists what can be asked; routes and the OpenAPI document are made from that list.
Queries run in one thread beside the scoring, which they must never delay.
"""
