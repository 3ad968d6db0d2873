"""Monte Carlo over supports: one folder per sampler, on one run mechanism and one result."""
