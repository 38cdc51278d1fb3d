"""What kernels of tutorials run first, so that commands print wide tables and no animation."""

import os

os.environ |= {"TERM": "dumb", "COLUMNS": "96", "LINES": "40"}  # rich needs both sizes
