"""The runtime: lives in the driver's Python process and decides how much each batch of each query takes in."""

__version__ = "0.1.0"
