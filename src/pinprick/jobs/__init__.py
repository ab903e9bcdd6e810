"""The work of each command as one function, which Python users can call too."""
