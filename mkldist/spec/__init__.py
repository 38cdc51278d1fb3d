"""What the user asked for: the sweep file, its models and its errors."""
