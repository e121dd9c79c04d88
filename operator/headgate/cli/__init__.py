"""The command `headgate`. One command a file; `app` registers them and turns errors into exit codes."""
