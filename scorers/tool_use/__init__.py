"""Scorers that check what an agent did by rules, most of them without a reference."""
