"""``python -m arboost``: the command line."""

from arboost.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
