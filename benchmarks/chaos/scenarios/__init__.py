"""One file for each scenario."""
