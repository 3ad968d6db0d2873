"""Compiled kernels: the pivot tableau of a support, and the moves that change the support."""
