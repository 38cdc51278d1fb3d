"""Banks of Gram matrices: how they are built, stored, read and asked."""
