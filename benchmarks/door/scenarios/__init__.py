"""One module a scenario, each with a `SCENARIO`."""
