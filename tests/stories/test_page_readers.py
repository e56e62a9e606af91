"""The page of those who may look and not touch: it offers nothing that it would refuse."""

import pytest
from pages import assert_quiet, gripper, opened, turn
from serving import Server

from recoup.study.study import Study
from recoup.study.trials.diary import pause

WRITING = (
    *("Ask for trials", "Try the mean", "Try my own", "Pause", "Resume", "Tell", "Put right"),
    *("Put these means in line", "Write down", "Change it", "What would change"),
)
SERVED = {"token": (), "server": ("--read-only",)}


@pytest.fixture(scope="module", params=SERVED)
def looked_at(request, tmp_path_factory):
    """A paused study, the address of one who may only look at it, and who says so."""
    folder = tmp_path_factory.mktemp("readers")
    with Study.open(gripper(folder / "robot.db")) as study, study.store.writing():
        pause(study.store, True)
    with Server(folder, folder / "robot.db", words=SERVED[request.param]) as server:
        address = server.read_address if request.param == "token" else server.address
        yield server, address, request.param


def offered(page):
    """What one can press and is there to write, and what one can type a result into."""
    texts = page.locator("button:visible, a.button:visible").all_inner_texts()
    wrong = [text for text in texts if text.startswith(WRITING)]
    return wrong + [one.inner_html() for one in page.locator(".trial input").all()]


def test_what_only_reads_is_said_and_nothing_is_offered_that_writes(browser, looked_at):
    server, address, who = looked_at
    saying = {
        "token": "This token may only read: nothing can be told or asked for.",
        "server": "This server only reads: nothing can be told or asked for.",
    }[who]
    with opened(browser, server, study=None, address=address) as page:
        page.get_by_text(saying).wait_for()
        for view in ("work", "see", "data", "deploy"):
            turn(page, server, view)
            page.get_by_text("Paused: nobody is given trials.").wait_for()
            assert offered(page) == []
            if view == "work":
                page.get_by_text(saying).wait_for()
                assert page.locator(".trial").count() == 3
        turn(page, server, "see")
        page.get_by_role("button", name="Trial 30", exact=True).click()
        page.get_by_role("dialog").get_by_text("What was tried").wait_for()
        assert offered(page) == []
        assert_quiet(page, server)
