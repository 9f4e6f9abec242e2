"""Audits of privacy claims: attacks from outside, a look inside a fit, and planted faults."""
