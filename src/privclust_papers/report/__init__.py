"""What a run says: verdicts, numbers beside the printed ones, drawings, page, costs, archive."""
