"""Simulated annealing at a fixed number of columns, the paper's Algorithm 2."""
