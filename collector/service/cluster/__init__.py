"""The engine over Kafka and PostgreSQL: any number of processes, each with one or several roles.

A *gateway* receives requests and writes them to Kafka. A *scorer* reads some of the partitions and
commits results to PostgreSQL. The *gauge* publishes what all scorers have committed; another one
takes over when it ends.

    engine.py              the engine of one process, whatever its roles
    partitions.py          checks the number of partitions at the start; decodes their records
    partition_store.py     a partition as a store: requests in Kafka, everything else in PostgreSQL
    partition_scorers.py   the scorers of the partitions that this process has
    rejoining.py           how long a process waits before it joins the consumer group again
    gauge_role.py          becomes the gauge, and publishes while it is
"""
