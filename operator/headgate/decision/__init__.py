"""The decision core: from what was measured to what shall hold, by computation alone.

It knows no Kubernetes, no Spark and no clock: measurements, time and chance come in as arguments, frozen
values go out. So the same code decides in a cluster, on one machine and over a recording.
"""
