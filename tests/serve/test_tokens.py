"""Tokens, and the sessions that stand for them."""

import pytest

from recoup.checks import InputError
from recoup.serve import tokens
from recoup.serve.tokens import FULL, READING, Tokens, new_tokens, tokens_in

KNOWN = new_tokens()


@pytest.mark.parametrize(("which", "rights"), [(0, FULL), (1, READING)])
def test_a_session_allows_what_its_token_does_for_a_while(monkeypatch, which, rights):
    token = KNOWN[which]
    session = KNOWN.session(token)
    assert KNOWN.rights(session) == KNOWN.rights(token) == rights
    assert token not in session
    assert session != KNOWN.session(token)
    assert Tokens(*KNOWN).rights(session) == rights  # after a restart
    assert new_tokens().rights(session) is None
    monkeypatch.setattr(tokens, "SESSION_SECONDS", -1)
    assert KNOWN.rights(KNOWN.session(token)) is None


@pytest.mark.parametrize("change", ["9{0}", "{0}0", ".{0}", "{0}.", "\udcff{0}", "nan.{0}"])
def test_a_session_that_was_changed_allows_nothing(change):
    assert KNOWN.rights(change.format(KNOWN.session(KNOWN.full))) is None


def test_there_is_no_session_for_what_is_no_token():
    for given in ("", "x", "\udcff", KNOWN.session(KNOWN.full)):
        assert KNOWN.session(given) is None


@pytest.mark.parametrize("mark", ["\0", "\x1b", "\x7f", "\u00fc"])
def test_a_token_that_no_header_can_hold_is_refused(tmp_path, mark):
    file = tmp_path / "tokens"
    assert tokens_in(file) == tokens_in(file)
    full, reading = tokens_in(file)
    file.write_text(f"{full}{mark}\n{reading}\n")
    with pytest.raises(InputError, match="must hold two different tokens"):
        tokens_in(file)
