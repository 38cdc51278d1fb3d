"""Methods that the papers compare against: fixed, chosen or aligned kernel weights."""
