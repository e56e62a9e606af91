"""Spaces of every kind and depth, as Hypothesis draws them."""

import math

import numpy as np
from gymnasium import spaces
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# The same examples every time, however long they take.
ANY = settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=HealthCheck)
SHAPES = [(), (1,), (3,), (2, 2), (4, 3, 3)]  # the last: a small picture
FLOATS, WHOLE = (np.float32, np.float64), (np.uint8, np.int16, np.int32, np.int64)
NAMES = st.text("zyxcba", min_size=1, max_size=3)


@st.composite
def boxes(draw, kinds=(*FLOATS, *WHOLE)):
    shape, kind = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(kinds))
    if kind is np.uint8:
        return spaces.Box(0, 255, shape, kind)
    if np.issubdtype(kind, np.integer):
        most = min(int(np.iinfo(kind).max), 2**60 + 1)  # no float; larger ones cannot be sampled
        low = draw(st.sampled_from([-most, -7, 3]))
        return spaces.Box(low, draw(st.sampled_from([low + 100, most])), shape, kind)
    low, width = draw(st.floats(-1e4, 1e4, width=32)), draw(st.floats(0.5, 1e3, width=32))
    ends = draw(st.sampled_from([(low, low + width), (-math.inf, low), (low, math.inf)]))
    ends = draw(st.sampled_from([ends, (-math.inf, math.inf)]))
    return spaces.Box(*ends, shape, kind)


def counts(shape):
    return st.lists(st.integers(1, 4), min_size=math.prod(shape), max_size=math.prod(shape))


@st.composite
def choices(draw):
    """Discrete, MultiDiscrete and MultiBinary, with starts and shapes."""
    kind = draw(st.sampled_from(["discrete", "several", "binary"]))
    start = draw(st.integers(-3, 3))
    if kind == "discrete":
        dtype = draw(st.sampled_from([np.int64, np.int32]))
        return spaces.Discrete(draw(st.integers(1, 5)), start=start, dtype=dtype)
    shape = draw(st.sampled_from([(1,), (3,), (2, 2)]))
    if kind == "binary":
        return spaces.MultiBinary(shape[0] if len(shape) == 1 else shape)
    nvec = np.reshape(draw(counts(shape)), shape)
    return spaces.MultiDiscrete(nvec, start=np.full(shape, start))


def dicts(parts, keys):
    """Written by keyword, as pairs of any order and kind of keys, as a mapping that is sorted."""
    pairs = {"min_size": 1, "max_size": 4, "unique_by": lambda pair: pair[0]}
    return st.one_of(
        st.lists(st.tuples(NAMES, parts), **pairs).map(lambda found: spaces.Dict(**dict(found))),
        st.lists(st.tuples(keys, parts), **pairs).map(spaces.Dict),
        st.lists(st.tuples(NAMES, parts), **pairs).map(lambda found: spaces.Dict(dict(found))),
    )


def nested(parts, keys=st.one_of(st.text(max_size=4), st.integers(-5, 5))):  # noqa: B008
    return st.one_of(dicts(parts, keys), st.lists(parts, min_size=1, max_size=3).map(spaces.Tuple))


OBSERVED = st.recursive(boxes() | choices(), nested, max_leaves=6)
