import warnings

import pytest

from recoup.deprecation import deprecated, renamed


@deprecated("0.3", instead="recoup.new(x)")
def old(x):
    """Twice x."""
    return 2 * x


@renamed("1.9", size="batch", n="draws")
def told(theta, batch=1, draws=1):
    return theta, batch, draws


def test_a_function_that_goes_says_when_and_what_to_use():
    want = r"`old` is deprecated since recoup 0\.3 and goes in 0\.5: use `recoup\.new\(x\)`\."
    with pytest.warns(DeprecationWarning, match=f"^{want}$") as said:
        assert old(3) == 6
    assert said[0].filename == __file__
    assert (old.__name__, old.__doc__) == ("old", "Twice x.")


def test_an_argument_of_another_name_says_which_it_is():
    want = r"`told\(size=...\)` is deprecated since recoup 1\.9 and goes in 1\.11: use `told\(batch"
    with pytest.warns(DeprecationWarning, match=want) as said:
        assert told(1, size=5) == (1, 5, 1)
    assert [one.filename for one in said] == [__file__]
    with pytest.warns(DeprecationWarning, match="use `told") as said:
        assert told(1, size=5, n=7) == (1, 5, 7)
    assert len(said) == 2


def test_what_is_called_by_its_name_says_nothing():
    assert told(1, 2) == (1, 2, 1)
    assert told(1, batch=2, draws=3) == (1, 2, 3)


def test_an_argument_under_both_names_is_refused():
    with pytest.raises(TypeError, match=r"`told\(batch=...\)` is given twice, once as 'size'\.$"):
        told(1, batch=2, size=3)


def test_a_place_is_warned_of_once():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            old(1)
        old(1)
    assert len(said) == 2
