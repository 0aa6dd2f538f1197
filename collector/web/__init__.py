"""The pages for people: from an alert to the runs that failed, and to the reason.

The server renders them, in the thread of the queries, from the same functions that answer the API.
Names, arguments and answers come from agents and may be hostile: templates escape everything, and
`display.py` makes invisible characters visible.
"""
