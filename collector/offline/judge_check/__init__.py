"""`pathgauge judge check`: measures how far a judge agrees with human labels, and how easily it is
deceived.
"""
