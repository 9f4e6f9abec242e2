"""Shared foundations that import no other subpackage: files, checks, loops, algebra."""
