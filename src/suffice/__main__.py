"""`python -m suffice`: the command line."""

from suffice.cli import main

if __name__ == "__main__":
    main()
