"""The `suffice` command, and `python -m suffice`."""

import signal


def main() -> None:
    """Run the command line."""
    interrupted = signal.getsignal(signal.SIGINT)
    if interrupted is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt of the imports ends it, with no traceback
    from suffice import cli

    signal.signal(signal.SIGINT, interrupted)
    cli.app()


if __name__ == "__main__":
    main()
