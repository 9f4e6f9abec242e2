"""Multi-Task Learning for Subspace Segmentation (ICML 2015)."""
