"""Why few pixels mislead: maps of where a class is seen, and what each changed pixel does."""
