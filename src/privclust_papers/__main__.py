"""``python -m privclust_papers``: the command ``privclust-papers``."""

import sys

from privclust_papers.command import main

if __name__ == "__main__":  # tools import every module
    sys.exit(main())
