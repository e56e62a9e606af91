"""`recoup serve`: studies and runs by HTTP, for pages, robots and workers.

Starlette and uvicorn are imported where a server starts, nowhere else; clients import the
standard library alone.
"""
