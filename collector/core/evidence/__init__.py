"""What explains a result: the evidence of an evaluation, the comparison with its reference, and the
category of its failure.
"""
