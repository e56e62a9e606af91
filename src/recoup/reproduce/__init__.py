"""The paper's experiments, run again: every figure, and every claim as a measured statement."""

ORDER = (  # the figures, as they stand in the paper
    "bounds",
    "toy-variance",
    "toy-weights",
    "toy-paths",
    "toy-directions",
    "toy-returns",
    "mountain-car",
    "reach-model",
    "reach-2",
    "reach-2-cost",
    "reach-2-strip",
    "reach-4",
    "reach-4-strip",
    "reach-9",
)
