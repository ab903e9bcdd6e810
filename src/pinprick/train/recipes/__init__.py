"""Recipes of training: which images a step is made on."""
