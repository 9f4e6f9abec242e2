"""Differentially Private Subspace Clustering (NIPS 2015)."""
