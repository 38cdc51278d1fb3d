"""What every other package stands on: files, processors, memory, compiled functions, arrays."""
