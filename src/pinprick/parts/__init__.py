"""What attacks share: plain functions, and the one class that every minimal attack needs."""
