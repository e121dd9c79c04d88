"""The ports of the loop on one machine: a process, and files in the state folder."""
