"""``python -m mkldist``."""

from mkldist.cli import main

if __name__ == "__main__":
    main()
