"""MKL methods, a family a package and a method a file; the registry names them all."""
