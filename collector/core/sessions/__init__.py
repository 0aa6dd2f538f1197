"""Sessions: all turns under one conversation id, scored together when the session has ended.

A session is not a case: a case is the conversation of one scenario with a multi-turn reference,
and its score is the mean over the turns of that reference. A session needs no reference.
"""
