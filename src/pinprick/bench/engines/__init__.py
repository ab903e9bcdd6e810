"""Engines decide where cells run and nothing else: here, in processes, or on a Ray cluster."""
