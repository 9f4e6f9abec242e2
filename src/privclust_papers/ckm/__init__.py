"""Differentially Private Compressive k-Means (ICASSP 2019)."""
