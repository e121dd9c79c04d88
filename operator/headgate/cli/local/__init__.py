"""`headgate local`: the command, its session, its run, and how a person asks it to stop."""
