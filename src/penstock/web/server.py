"""The controller with its dashboard: ``python -m penstock.web.server HOME PORT``."""

from __future__ import annotations

import sys

from penstock.control.server import main
from penstock.web.pages import add_pages

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], add_pages))
