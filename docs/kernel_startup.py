"""What kernels of tutorials run first: commands then print no colours and no moving progress."""

import os

os.environ["TERM"] = "dumb"
