"""Mutation testing: the share of small changes to the code that the tests catch."""
