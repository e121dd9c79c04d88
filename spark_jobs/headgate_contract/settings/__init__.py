"""What a job may say of its queries and sources by itself, without a resource.

`table` has one row per setting, `said` reads options and properties, `layers` puts what they say beside a control
document. All of it computes from values.
"""
