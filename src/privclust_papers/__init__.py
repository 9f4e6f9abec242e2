"""The reproduction of the papers: their data, settings, figures, verdicts and reports.

It lives in a clone, next to ``config`` and ``workflow``, and is not in the wheel.
"""
