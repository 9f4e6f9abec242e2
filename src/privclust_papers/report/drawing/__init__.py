"""How figures look, and what those of several papers share."""
