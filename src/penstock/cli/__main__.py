"""``python -m penstock.cli`` is ``penstock``."""

from penstock.cli.main import main

if __name__ == "__main__":
    main()
