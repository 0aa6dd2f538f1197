"""Decodes what instrumentations write into attributes and log bodies: values, messages, tool
arguments and results, in any of their formats.
"""
