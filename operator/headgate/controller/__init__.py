"""What runs the loop: which application is next, on what knowledge, and what is remembered between two reconciles.

`cluster` does it for all applications of a cluster, on what watches have told, and `reconciliation` once for one of
them; `local` does it for one application on one machine. The queue, its workers and the ticker say when. Nothing
here knows Kopf, and the loop knows nothing of this.
"""
