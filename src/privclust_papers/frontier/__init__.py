"""The frontier of private k-means: the table of PE-means, compared by its protocol."""
