"""What is searched and what is wanted: parameters in units and latent, goals, limits."""
