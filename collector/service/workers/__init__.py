"""Several scorer processes on one machine: `workers: N`.

The parent process receives requests and publishes scores. It splits each request by trace id and
sends every scorer its part over a pair of sockets. A scorer has a store of its own, and answers
when its part is durable. What it has scored it commits as publications, which the parent reads in
order, each once.

    fleet.py               the engine of the parent
    scorer_process.py      one scorer as the parent sees it: started again when it ends
    process.py             the scorer process itself
    publication_thread.py  the thread of the parent that publishes what scorers have committed
    messages.py, channel.py  what the processes tell each other, and how
"""
