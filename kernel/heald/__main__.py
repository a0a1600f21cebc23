"""`heald`, and `python -m heald`: it imports all else where Ctrl-C is already expected."""

import sys


def main() -> None:
    """Run the command line; an interrupt at any moment ends it without a traceback."""
    try:
        from heald.cli import main as run  # noqa: PLC0415 - most of the start is this import

        run()
    except KeyboardInterrupt:
        sys.stderr.write("heald: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
