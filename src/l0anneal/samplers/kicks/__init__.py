"""Iterated descent: kick a support out of its minimum and walk down again."""
