"""Population annealing, which also measures the free energy."""
