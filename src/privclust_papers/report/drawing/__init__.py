"""Style of the figures, and parts that several papers share."""
