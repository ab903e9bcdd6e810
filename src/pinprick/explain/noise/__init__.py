"""What changed pixels do: obscuring and leading noise."""
