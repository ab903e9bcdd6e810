"""The benchmark: a plan unfolds into cells, and each finished cell is one file of rows."""
