"""Slow reference implementations and small data shared by the tests."""
