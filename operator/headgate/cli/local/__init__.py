"""`headgate local`: the command, its session, and how a person asks it to stop."""
