"""Results as rows, text, pictures and figures. Nothing here asks a model."""
