"""Streaming sources that ship with Headgate; each works in any Spark job, governed or not."""
