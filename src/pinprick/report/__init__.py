"""From results to rows, pictures and figures."""
