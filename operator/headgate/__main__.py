"""`python -m headgate`: the command, where the folder of commands is not on the `PATH`."""

from headgate.cli.main import main

if __name__ == "__main__":
    main()
