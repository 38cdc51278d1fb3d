"""What the kernel of every tutorial runs first: commands print no colours and no moving progress."""

import os

os.environ["TERM"] = "dumb"
