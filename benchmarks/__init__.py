"""Measurements of Headgate on this machine; each writes a result file that documents quote from."""
