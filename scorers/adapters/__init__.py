"""Scorers from what people already have: functions and evaluators in the shapes of other tools."""
