"""Pages that can be passed on: one HTML file each, with everything in it."""
