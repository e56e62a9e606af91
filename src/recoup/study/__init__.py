"""The study: ask and tell by hand, days apart, on one file that loses nothing."""
