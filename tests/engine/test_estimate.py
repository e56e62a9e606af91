import itertools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import (
    loop_estimate,
    loop_scores,
    loop_weights,
    random_problem,
    stratified_error,
)

import recoup
from recoup.checks import InputError
from recoup.engine import compiled_estimate as estimates
from recoup.engine import plain
from recoup.engine.parts import BASELINES, WEIGHTINGS

SHAPERS = list(itertools.product([None, 0.7], [None, 1.5], [False, True]))
KEYS = ("proposals", "target")


@pytest.fixture
def by_jax(monkeypatch):
    """As of more than a million numbers."""
    monkeypatch.setattr(plain, "NUMPY_NUMBERS", 0)


@pytest.fixture(params=["numpy", "jax"])
def by(request):
    if request.param == "jax":
        request.getfixturevalue("by_jax")
    return request.param


def assert_agrees(got, want, tolerance):
    for name, value in want.items():
        scale = np.max(np.abs(value))
        np.testing.assert_allclose(
            getattr(got, name), value, rtol=0, atol=tolerance * scale, err_msg=name
        )


def shapers_with(weighting, baseline, dtype, by):
    """In float64 all of them by NumPy; by JAX each with each weighting and with each baseline.

    In float32, where only digits can differ, none and all: by JAX likewise.
    """
    every = [dict(zip(("flatten", "truncate", "normalize"), s, strict=True)) for s in SHAPERS]
    some = every if dtype == np.float64 else [every[0], every[-1]]
    if by == "numpy":
        return some
    n = 2 if dtype == np.float64 else 1
    first = n * (list(WEIGHTINGS).index(weighting) + list(BASELINES).index(baseline))
    return [some[i % len(some)] for i in range(first, first + n)]


@pytest.mark.parametrize(("dtype", "shapers"), [(np.float64, len(SHAPERS)), (np.float32, 2)])
def test_every_shaper_meets_every_weighting_and_every_baseline_by_jax(dtype, shapers):
    met = [
        (word, str(some))
        for weighting, baseline in itertools.product(WEIGHTINGS, BASELINES)
        for some in shapers_with(weighting, baseline, dtype, "jax")
        for word in (f"weighting {weighting}", f"baseline {baseline}")
    ]
    assert len(set(met)) == (len(WEIGHTINGS) + len(BASELINES)) * shapers


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-4)])
def test_every_combination_agrees_with_a_plain_loop(weighting, baseline, dtype, tolerance, by):
    problem = random_problem(dtype=dtype)
    chosen = {"weighting": weighting, "baseline": baseline}
    if weighting == "power-mean":
        chosen["power"] = 0.3
    for shapers in shapers_with(weighting, baseline, dtype, by):
        options = {**chosen, **shapers}
        with jax.disable_jit(dtype == np.float64):  # 56 compilations would take a minute
            found = recoup.estimate(**problem, **options)
        assert found.mean_gradient.dtype == dtype
        assert_agrees(found, loop_estimate(problem, **options), tolerance)


@pytest.mark.usefixtures("by_jax")
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_what_is_compiled_in_float64_agrees_too(weighting):
    problem, shapers = random_problem(), {"flatten": 0.7, "truncate": 1.5, "normalize": True}
    options = {"weighting": weighting, "baseline": "optimal", **shapers}
    compiled = recoup.estimate(**problem, **options)
    assert compiled.mean_gradient.dtype == np.float64
    assert_agrees(compiled, loop_estimate(problem, **options), 1e-10)


def test_defaults_are_balance_weights_and_the_optimal_baseline():
    problem = random_problem(1)
    want = loop_estimate(problem, weighting="balance", baseline="optimal")
    assert_agrees(recoup.estimate(**problem), want, 1e-10)


def test_jax_arrays_give_the_same_as_numpy_arrays():
    problem = random_problem(2, dtype=np.float32)
    as_jax = jax.tree.map(jnp.asarray, problem)
    both = (recoup.estimate(**p)._replace(given=None) for p in (problem, as_jax))
    for a, b in zip(*both, strict=True):
        np.testing.assert_array_equal(a, b)


def test_estimate_can_be_traced_and_differentiated_in_the_objective(x64):
    problem = jax.tree.map(jnp.asarray, random_problem(3))

    def objective(mean):
        target = (mean, problem["target"][1])
        return recoup.estimate(**{**problem, "target": target}, baseline="none").objective

    got = recoup.estimate(**problem, baseline="none").mean_gradient
    np.testing.assert_allclose(jax.jit(jax.grad(objective))(problem["target"][0]), got, rtol=1e-9)


def test_factors_can_be_traced_too(x64):
    problem = jax.tree.map(jnp.asarray, random_problem(3))
    dim = problem["theta"].shape[1]
    factors = [jnp.eye(dim) * jnp.asarray(problem[key][1])[..., None] for key in KEYS]
    means = [problem[key][0] for key in KEYS]

    def objective(factors):
        rho = dict(zip(KEYS, zip(means, factors, strict=True), strict=True))
        return recoup.estimate(**{**problem, **rho}, family="full", baseline="none").objective

    want = recoup.estimate(**problem, baseline="none").objective
    assert jax.jit(objective)(factors) == pytest.approx(float(want), rel=1e-9)


def test_failed_rollouts_count_as_drawn_and_are_left_out():
    """The mixture knows all that was drawn; the weights of the others are over their mean."""
    problem, gone = random_problem(4), [2, 7, 11]
    failing = {**problem, "returns": problem["returns"].copy()}
    failing["returns"][gone] = np.nan, np.inf, -np.inf
    kept = np.delete(np.arange(23), gone)
    w = np.array(loop_weights(problem, "balance", 0.1, None, None, False))[kept]
    w, r, s = w / w.mean(), problem["returns"][kept], loop_scores(problem)[kept]
    residuals = w * (r - (w * r).mean())
    every = np.zeros(23)  # one that failed is a draw that adds nothing
    every[kept] = residuals
    error = stratified_error(every, list(problem["proposal"])) / 20
    for baseline in BASELINES:
        with jax.disable_jit():
            got = recoup.estimate(**failing, baseline=baseline)
        gradient = np.concatenate([got.mean_gradient, got.std_gradient])
        np.testing.assert_allclose(gradient, residuals @ s / 20, rtol=1e-9)
        np.testing.assert_allclose(got.objective_stderr, error, rtol=1e-10)
        np.testing.assert_allclose(got.weights[kept], w, rtol=1e-10)
        assert got.failed == 3
        assert not got.weights[gone].any()


@pytest.mark.parametrize(("failure", "value"), [("worst", None), (-7.5, -7.5), (0, 0.0)])
def test_failed_rollouts_can_be_given_a_return(failure, value):
    problem, gone = random_problem(4), [2, 7, 11]
    failing = {**problem, "returns": problem["returns"].copy()}
    failing["returns"][gone] = np.nan
    returns = failing["returns"]
    value = np.nanmin(returns) if value is None else value
    filled = {
        **problem,
        "returns": np.where(np.isnan(failing["returns"]), value, problem["returns"]),
    }
    got, want = recoup.estimate(**failing, failure=failure), recoup.estimate(**filled)
    np.testing.assert_allclose(got.mean_gradient, want.mean_gradient, rtol=1e-12)
    assert got.objective_stderr == want.objective_stderr
    assert got.interval() == want.interval()
    assert (got.failed, want.failed) == (3, 0)


@pytest.mark.parametrize("failure", ["best", np.nan, [1.0, 2.0], None])
def test_what_a_failure_earns_is_a_word_or_a_number(failure):
    with pytest.raises(InputError, match="failure"):
        recoup.estimate(**random_problem(4), failure=failure)


def test_mirrored_errors_and_effective_sample_size_count_pairs():
    problem = random_problem(5, samples=24)
    got = recoup.estimate(**problem, mirrored=True)
    w, r = got.weights, problem["returns"]
    pairs = w[0::2] + w[1::2]
    residuals = (w * r - (w * r).mean()).reshape(-1, 2).sum(1)
    error = stratified_error(residuals, list(problem["proposal"][::2])) / 24
    assert got.ess == pytest.approx(pairs.sum() ** 2 / (pairs**2).sum())
    assert got.objective_stderr == pytest.approx(error)
    assert got.ess <= 12


def test_one_dominant_sample_costs_leave_one_out_no_digits():
    problem = random_problem(6)
    problem["theta"][4] = 9.0  # its curvature outweighs all others a million times
    got = recoup.estimate(**problem, weighting="none", baseline="leave-one-out")
    want = loop_estimate(problem, weighting="none", baseline="leave-one-out")
    np.testing.assert_allclose(got.baseline, want["baseline"], rtol=1e-12)


def test_weights_that_would_overflow_stay_finite():
    problem = random_problem(7, dim=400, dtype=np.float32)
    narrow = (problem["proposals"][0][0], np.full(400, 0.05, np.float32))
    problem["theta"][:] = narrow[0]
    got = recoup.estimate(**{**problem, "target": narrow}, weighting="own")
    assert np.isfinite(got.objective)
    assert np.isfinite(got.objective_stderr)
    assert np.isfinite(got.weights).all()


@pytest.mark.parametrize("baseline", [b for b in BASELINES if b != "none"])
def test_equal_returns_have_a_gradient_of_exactly_zero(baseline):
    for seed in range(20):
        problem = random_problem(seed)
        problem["returns"][:] = -17.42975686869792
        got = recoup.estimate(**problem, baseline=baseline)
        assert not got.mean_gradient.any()
        assert not got.std_gradient.any()


@pytest.mark.parametrize("baseline", ["mean", "optimal", "coordinate", "leave-one-out"])
def test_a_large_offset_of_the_returns_costs_float32_no_digits(baseline):
    problem = random_problem(8, dtype=np.float32)
    offset = {**problem, "returns": problem["returns"] + np.float32(2**17)}
    exact = {**problem, "returns": offset["returns"] - np.float32(2**17)}
    got, want = (recoup.estimate(**p, baseline=baseline) for p in (offset, exact))
    scale = np.abs(want.mean_gradient).max()
    np.testing.assert_allclose(got.mean_gradient, want.mean_gradient, rtol=0, atol=1e-6 * scale)


@pytest.mark.parametrize("baseline", ["leave-one-out", "split"])
def test_a_mirrored_pair_leaves_the_baseline_together(baseline):
    problem = random_problem(9, samples=12)
    got = recoup.estimate(**problem, weighting="none", baseline=baseline, mirrored=True)
    norms, returns = (loop_scores(problem) ** 2).sum(1), problem["returns"]
    for n in range(12):
        pair = np.arange(12) // 2
        others = pair != pair[n] if baseline == "leave-one-out" else pair % 2 != pair[n] % 2
        want = (norms * returns)[others].sum() / norms[others].sum()
        assert got.baseline[n] == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("baseline", BASELINES)
def test_one_sample_is_enough_for_a_finite_gradient(baseline):
    problem = random_problem(10, samples=1, proposals=1)
    got = recoup.estimate(**problem, baseline=baseline)
    assert np.isfinite(got.mean_gradient).all()
    assert np.isnan(got.objective_stderr)
    if baseline in ("none", "leave-one-out", "earlier", "split"):
        assert got.mean_gradient.any()


def test_traced_estimates_of_numpy_constants_stay_in_float32_without_a_warning():
    problem = random_problem(11)

    def objective(theta):
        return recoup.estimate(**{**problem, "theta": theta}).objective

    assert jax.jit(objective)(jnp.asarray(problem["theta"], jnp.float32)).dtype == jnp.float32


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"theta": np.zeros(3)}, r"theta=...\)` must have shape \[N', D\], got \[3\]"),
        ({"returns": np.zeros(5)}, r"returns=...\)` must have shape \[N'\] = \[23\], got \[5\]"),
        ({"proposal": np.zeros(3, int)}, r"proposal=...\)` must have shape \[N'\] = \[23\]"),
        ({"proposal": np.zeros(23)}, "must be whole numbers, got float64"),
        ({"proposal": np.full(23, 3)}, r"must lie in 0..2, got 3"),
        ({"proposals": np.zeros((3, 3))}, r"must be a pair \(means, stds\), got ndarray"),
        ({"proposals": (np.zeros((2, 4)), np.ones((2, 4)))}, r"means must have shape \[L, D\]"),
        ({"proposals": (np.zeros((3, 3)), np.zeros((3, 3)))}, r"positive .* got 0.0 at \[0, 0\]"),
        ({"target": (np.zeros(3), np.array([1.0, -2.0, 1.0]))}, r"positive .* got -2.0 at \[1\]"),
        ({"target": (np.zeros(2), np.ones(2))}, r"mean must have shape \[D\] = \[3\], got \[2\]"),
        ({"theta": np.full((23, 3), np.nan)}, r"theta=...\)` must be finite, got nan at \[0, 0\]"),
        ({"weighting": "ballance"}, "weighting must be one of .* Did you mean 'balance'"),
        ({"baseline": "optimum"}, "baseline must be one of .* Did you mean 'optimal'"),
        ({"truncate": 0}, "truncate must be above 0 and finite, got 0"),
        ({"flatten": 1.5}, r"flatten must be in \[0, 1\], got 1.5"),
        ({"power": -0.1}, r"power must be in \[0, 1\], got -0.1"),
        ({"power": "much"}, "power must be a number, got 'much'"),
        ({"normalize": "yes"}, "normalize must be True or False, got 'yes'"),
        ({"mirrored": True}, "needs an even number of samples, got 23"),
        ({"theta": [["a"] * 3] * 23}, r"theta=...\)` must be an array of real numbers, got"),
        ({"theta": [[1.0], [1.0, 2.0]]}, r"theta=...\)` must be an array of real numbers, got"),
        ({"returns": [None] * 23}, r"returns=...\)` must be an array of real numbers"),
        ({"returns": np.zeros(23, complex)}, r"returns=...\)` must be an array of real numbers"),
        ({"flatten": "0.5"}, "flatten must be a number, got '0.5'"),
        ({"truncate": True}, "truncate must be a number, got True"),
    ],
)
def test_bad_input_gets_one_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        recoup.estimate(**{**random_problem(), **change})
    assert "\n" not in str(caught.value)


def test_samples_that_were_not_told_take_part_in_nothing():
    problem = random_problem(4)
    told = np.arange(23) % 4 != 1
    few = {**problem, **{k: problem[k][told] for k in ("theta", "returns", "proposal")}}
    for baseline in BASELINES:
        want = loop_estimate(few, weighting="balance", baseline=baseline)
        with jax.disable_jit():
            got = recoup.estimate(**problem, baseline=baseline, told=told)
        np.testing.assert_allclose(got.mean_gradient, want["mean_gradient"], rtol=1e-12)
        np.testing.assert_allclose(got.weights[told], want["weights"], rtol=1e-12)
        assert got.objective_stderr == pytest.approx(want["objective_stderr"], rel=1e-12)
        assert not got.weights[~told].any()
    got, want = recoup.estimate(**problem, told=told), recoup.estimate(**few)
    np.testing.assert_allclose(got.mean_gradient, want.mean_gradient, rtol=1e-12)
    assert not got.weights[~told].any()
    assert got.interval() == pytest.approx(want.interval(), nan_ok=True)
    with pytest.raises(InputError, match="told"):
        recoup.estimate(**problem, told=told[:5])


HOW = [
    {},
    {"family": "full", "baseline": "coordinate"},
    {"baseline": "leave-one-out", "mirrored": True},
    {"failure": "worst", "baseline": "split", "weighting": "own", "family": "full"},
    {"told": None, "normalize": True},
]


@pytest.mark.parametrize("options", HOW)
def test_few_numbers_are_computed_by_numpy_as_the_compiler_has_them(options, monkeypatch):
    """Failed samples among them; intervals too."""
    problem = random_problem(2, samples=24)
    problem["returns"] = np.where(
        np.arange(len(problem["returns"])) == 3, np.nan, problem["returns"]
    )
    if "told" in options:
        options = {**options, "told": np.arange(len(problem["returns"])) < 17}
    mine = recoup.estimate(**problem, **options)
    ends = mine.interval()
    monkeypatch.setattr(plain, "NUMPY_NUMBERS", 0)
    other = recoup.estimate(**problem, **options)
    for name in mine._fields[:-1]:
        x, y = getattr(mine, name), getattr(other, name)
        assert np.shape(x) == np.shape(y), name
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(ends, other.interval(), rtol=1e-9, equal_nan=True)


@pytest.mark.parametrize("baseline", ["optimal", "leave-one-out", "coordinate"])
def test_a_few_more_samples_compile_nothing(baseline, by_jax):
    """33 to 36 samples of 17 or 18 proposals: one program, and the answers of a plain loop."""
    problem = random_problem(3, proposals=18, samples=36)
    (means, stds), programs = problem["proposals"], []
    for n, few in [(33, 17), (34, 18), (35, 18), (36, 17)]:
        rows = {key: problem[key][:n] for key in ("theta", "returns")}
        rows["proposal"] = np.minimum(problem["proposal"][:n], few - 1)
        given = {**problem, **rows, "proposals": (means[:few], stds[:few])}
        got = recoup.estimate(**given, baseline=baseline)
        want = loop_estimate(given, weighting="balance", baseline=baseline)
        assert got.weights.shape == (n,)
        assert_agrees(got, want, 1e-10)
        programs.append(estimates._compiled(got.given[0])._cache_size())
    assert len(set(programs)) == 1


def test_a_pair_of_which_one_is_not_there_is_left_to_the_compiler():
    problem = random_problem(2, samples=24)
    n = len(problem["returns"])
    found = recoup.estimate(**problem, mirrored=True, told=np.arange(n) != 2)
    assert found.weights[2] == 0
    assert np.isfinite(found.objective)


ALONE = """
import sys, numpy as np, recoup
theta = np.random.default_rng(0).normal(size=(202, 3))
how = {"proposals": ([[0.0] * 3], [[1.0] * 3]), "proposal": np.zeros(202, int)}
e = recoup.estimate(theta, -np.sum(theta**2, 1), **how, target=([0.2] * 3, [0.8] * 3))
ends = e.interval()
print(ends.low < e.objective < ends.high, "jax" in sys.modules)
"""


def test_an_estimate_of_few_samples_needs_no_compiler():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_masked_values_and_odd_masks_are_refused():
    """What lies behind a mask is no result: it was taken for one."""
    problem = random_problem()
    hidden = np.arange(len(problem["returns"])) < 4
    for key in ("returns", "theta"):
        wrong = np.ma.masked_array(problem[key], np.broadcast_to(hidden, problem[key].T.shape).T)
        with pytest.raises(InputError, match="has masked values: give NaN"):
            recoup.estimate(**{**problem, key: wrong})
    with pytest.raises(InputError, match="must be True or False, of shape"):
        recoup.estimate(**problem, told=hidden.astype(float))


def test_what_is_beyond_a_type_is_infinite_and_large_returns_have_an_error(by):
    problem, small = random_problem(dtype=np.float32), np.float32(1e-20)
    scaled = {key: tuple(x * small for x in problem[key]) for key in ("proposals", "target")}
    scaled |= {"theta": problem["theta"] * small, "returns": problem["returns"] / small}
    assert not np.isfinite(recoup.estimate(**{**problem, **scaled}).mean_gradient).any()
    problem = random_problem()
    want = recoup.estimate(**problem)
    for scale in (1e200, 1e-290):
        got = recoup.estimate(**{**problem, "returns": problem["returns"] * scale})
        assert got.objective_stderr / scale == pytest.approx(want.objective_stderr, rel=1e-9)
