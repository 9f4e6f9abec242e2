"""The command ``privclust-papers``; see `privclust_papers.command._main`."""

from privclust_papers.command._main import main, parser

__all__ = ["main", "parser"]
