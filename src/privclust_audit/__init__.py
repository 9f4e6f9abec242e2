"""Audits of privacy claims: black-box attacks, recorded fits, and planted faults."""
