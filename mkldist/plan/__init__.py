"""What is to be done, decided before anything is: runs, banks and batches, and their costs."""
