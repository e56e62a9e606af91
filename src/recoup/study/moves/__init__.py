"""The moves of the search distribution: how one is made of results, and when."""
