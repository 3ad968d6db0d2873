"""Tests of the replica theory."""
