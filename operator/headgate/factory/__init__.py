"""The one place where ports meet their adapters.

Commands call it; nothing else knows which adapter stands behind a port.
"""
