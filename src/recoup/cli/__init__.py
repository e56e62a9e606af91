"""The commands, and how they print. Nothing imports this room.

May import everything; what is slow to import is imported by the command that needs it.
"""
