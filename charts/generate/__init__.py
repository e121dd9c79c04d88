"""Files of the chart that are made from something else, so that each thing is written once.

| written | made from |
|---|---|
| the CRD's template | `crds/`, which comes from the models |
| the table of values in the chart's README | the comments in `values.yaml` |
| settings and names of alerts in `values.schema.json` | the model of the settings, `files/alerts.yaml` |
| the dashboards | the panels in `charts/generate/dashboards` |
| `argocd-cm.yaml` | the Lua files beside it |

`python -m charts.generate` writes them, `--check` compares. `make generate` and `make lint` call it.
"""
