"""What all rooms stand on, and what imports none of them: files, checks, loops, algebra."""
