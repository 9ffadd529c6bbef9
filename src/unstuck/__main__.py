"""Start the command line."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    from unstuck.surfaces.cli import run_cli  # noqa: PLC0415  # nothing is loaded before it is needed

    sys.exit(run_cli(sys.argv[1:]))


if __name__ == "__main__":
    main()
