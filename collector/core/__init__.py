"""The pure core: no clock, thread, socket or file. `pipeline.py` shows the whole flow."""
