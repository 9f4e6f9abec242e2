"""Generators of synthetic data: Gaussian mixtures, points in the plane, subspaces, images."""
