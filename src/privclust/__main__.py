"""``python -m privclust``: the command of that name."""

import sys

from privclust.command import main

if __name__ == "__main__":  # tools import every module
    sys.exit(main())
