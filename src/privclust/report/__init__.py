"""Private clusters of a table: its own units and names, errors, a picture, a report.

The names in the stub next to this file are imported when they are first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
