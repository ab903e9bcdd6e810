"""Numbers from what was measured per image: rates, counts, intervals, curves and paired tests.

Pure functions of arrays with one entry per image. No model is queried.
"""
