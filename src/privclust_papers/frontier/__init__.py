"""The frontier of private k-means: the table of PE-means, with its protocol, beside ours."""
