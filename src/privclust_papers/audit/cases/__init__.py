"""Cases of the audit: a claim, a pair of neighbours that is as bad as is known, an attack."""
