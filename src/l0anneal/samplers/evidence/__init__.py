"""Evidence annealing: which columns, how many of them, and how sure that is."""
