"""Practical Privacy for Expectation Maximization (2016; DP-EM)."""
