"""Entry point of `headgate`: runs the command line, and leaves in order when it is interrupted or cannot speak.

All else is imported below, not above: that takes most of a second, and Ctrl-C within it has to end the command as it
does at any other time. So has an output that cannot be written, a full disk for one, which no command expects.
"""

import sys

from headgate.cli.streams import is_of_output, let_go, make_ready

INTERRUPTED = 130
"""As a shell has it for a process that SIGINT has ended."""


def main() -> None:
    make_ready()
    try:
        try:
            from headgate.cli.app import run

            run()
        finally:
            sys.stdout.flush()  # what the interpreter fails to write at its end, it tells in a way of its own
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as error:
        if not is_of_output(error):
            raise
        let_go(sys.stdout)
        _say(f"error: the output cannot be written: {error.strerror}\n")
        sys.exit(1)


def _say(message: str) -> None:
    try:
        sys.stderr.write(message)
        sys.stderr.flush()
    except OSError:
        let_go(sys.stderr)


if __name__ == "__main__":
    main()
