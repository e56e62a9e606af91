"""Twelve names of gains that are longer than a column of a narrow terminal."""

GAINS = [
    f"{joint}_{axis}_{kind}_gain_{side}"
    for joint, axis, kind in (
        ("shoulder", "pitch", "stiffness"),
        ("shoulder", "roll", "damping"),
        ("elbow", "flexion", "stiffness"),
        ("wrist", "rotation", "feedforward"),
        ("hip", "abduction", "integral"),
        ("knee", "flexion", "derivative"),
    )
    for side in ("left", "right")
]
