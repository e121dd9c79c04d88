"""Kopf: what is heard from the API server, and the queue that turns it into turns of the loop."""
