"""HTML pages made from results: the report, and the parts of pages that it is built from."""
