"""The best k columns of a dictionary for a signal, found by annealing."""
