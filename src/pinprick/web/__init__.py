"""Pages served to a browser on this machine: attack a picture, compare attacks, browse stores."""
