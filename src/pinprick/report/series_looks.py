"""Colours and markers of series in plots, by their order: distinct without colour, too.

The colours are those of Okabe and Ito, without yellow, which is too light for thin lines.
"""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = "osD^vPX*"
