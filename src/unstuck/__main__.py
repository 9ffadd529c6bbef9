"""Start the command line."""

import gc
import os
import sys

FEW_CIRCLES = 50_000
"""Objects between two looks for garbage: loading makes many that stay, and a run makes hardly any in circles."""


def main() -> None:
    """Run the command line and exit with its code."""
    gc.set_threshold(FEW_CIRCLES)
    if sys.argv[1:2] == ["hook"] and not any(word.startswith("-") for word in sys.argv[2:]):
        from unstuck.hook.entry import answer_event  # noqa: PLC0415  # after every call of an agent's: nothing else is loaded

        code = answer_event(sys.argv[2:])
        sys.stdout.flush()
        os._exit(code)  # everything is written: to take the interpreter down in order would be waited for
    from unstuck.cli import run_cli  # noqa: PLC0415  # nothing is loaded before it is needed

    code = run_cli(sys.argv[1:])
    gc.freeze()  # collecting garbage at the end only takes time
    sys.exit(code)


if __name__ == "__main__":
    main()
