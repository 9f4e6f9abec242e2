"""privclust: private clustering, and papers on it reproduced from one command."""

__version__ = "0.2.0"
