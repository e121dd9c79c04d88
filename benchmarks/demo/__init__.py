"""The demo: a year of flights, read plainly at low latency, plainly uncapped, and governed, side by side."""
