"""Pages that can be passed on: one HTML file each, with everything in it.

May import `reproduce`, `runs`, `study`, `engine` and `pictures`.
"""
