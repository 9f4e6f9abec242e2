"""The privacy audit: attacks on every mechanism of the papers and of this project."""
