"""Interfaces in the style of scikit-learn: regressor, path over sizes, sparse coder, displays."""
