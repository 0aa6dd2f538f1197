"""Turns functions and evaluators written for other tools into scorers."""
