"""The command `headgate`. One command a file; `main` registers them and turns errors into exit codes."""
