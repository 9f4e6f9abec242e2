"""The command ``privclust``; see `privclust.command._main`."""

from privclust.command._main import main, parser

__all__ = ["main", "parser"]
