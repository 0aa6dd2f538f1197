"""The Grafana dashboards as code: nothing comes in, the JSON files of `deploy/grafana/dashboards`
go out.

`make manifests` writes them; a test compares. Each module but `panels` and `queries` is one
dashboard, with a function `build`.
"""
