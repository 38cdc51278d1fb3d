"""The sweep file: its models, how it is read, and the messages about mistakes in it."""
