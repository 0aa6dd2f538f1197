"""Generates the Grafana dashboards of `deploy/grafana/dashboards`.

`make manifests` writes the files; a test checks that they are up to date. `overview`, `scenario`
and `operations` each build one dashboard.
"""
