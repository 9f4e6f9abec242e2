"""Cases of the audit: a claim, the worst known pair of neighbours, and an attack."""
