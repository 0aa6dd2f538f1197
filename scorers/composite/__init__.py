"""Scorers that combine other scorers, and the view of one sub-agent of several."""
