"""The resource `SparkApplication`: its models, its rules, and what is generated from them.

Everything here is about what a person may declare and what they read back. `load` is the way in for files, `crd` the
way out to Kubernetes; deciding and applying are other packages' work, which take these models as values.
"""
