"""The entry point: `tuneassist` and `python -m tuneassist`."""

from __future__ import annotations

import sys

from tuneassist.commands._main import main

if __name__ == "__main__":
    sys.exit(main())
