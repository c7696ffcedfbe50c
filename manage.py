#!/usr/bin/env python
"""The program `evalapp` of a checkout; see docs/reference/commands.md. `.venv/bin/evalapp` runs it, too."""

import sys
from pathlib import Path

from evalapp.cli import main

if __name__ == "__main__":
    main(program=Path(sys.argv[0]).name)
