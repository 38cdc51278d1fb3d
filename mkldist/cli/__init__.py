"""The command line: words to one library call to a printed answer."""
