"""Report of a run: verdicts, comparisons with printed numbers, drawings, page, costs, archive."""
