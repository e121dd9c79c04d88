"""The scenarios of `make bench-live`."""
