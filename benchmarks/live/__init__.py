"""Entering a backlog and leaving it: votes, change streams, real-time mode."""
