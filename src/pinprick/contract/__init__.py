"""What every attack keeps to, as questions about runs on networks whose arithmetic is known."""
