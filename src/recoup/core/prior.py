"""What the model of the returns expects before it has seen any: its kernel, and the grid."""

LEVEL, SLOPE = 3.0, 3.0  # variances of the level and of the slope, over that of the bumps
LENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)  # squared, over the number of dimensions
BOWLS = (0.03, 0.25, 2.0)  # variance of the bowl
NOISES = (1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)  # variance of the noise
