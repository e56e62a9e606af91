"""Numbers, times and small tables as people read them."""
