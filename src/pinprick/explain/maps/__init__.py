"""Maps of where a network sees a class."""
