"""Whether a judge is any good: what people said of examples comes in, how far a judge agrees, and
what deceives it, goes out.
"""
