"""Replica exchange in temperature and in the number of columns."""
