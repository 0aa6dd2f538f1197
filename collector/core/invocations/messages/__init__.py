"""What instrumentations write into attributes and log bodies: values, messages, tool arguments and
results, read whatever their shape.
"""
