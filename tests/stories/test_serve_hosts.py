"""The server at other addresses and with TLS: curl, Python, a worker and a browser, end to end."""

import shutil
import subprocess
import sys

import pytest
from browser import browsing
from calls import Calls
from pages import card, gripper, opened, trials
from program import recoup
from serving import Server

import recoup as library

LOOPS = sys.platform == "linux"  # elsewhere 127.0.0.2 is no address of the machine
WARNING = "can be reached by other machines, and without --certfile whoever is on the way reads"
ROLLOUT = "def rollout(stiffness, damping, approach):\n    return -damping\n"


def signed(home, name="127.0.0.1"):
    """A certificate of a name that nobody else has signed, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650"]
    files = ["-keyout", home / f"{name}-key.pem", "-out", home / f"{name}.pem"]
    of = f"subjectAltName={'IP' if name[0].isdigit() else 'DNS'}:{name}"
    more = ["-subj", f"/CN={name}", "-addext", of]
    subprocess.run([*command, *map(str, files), *more], check=True, capture_output=True)
    return home / f"{name}.pem", home / f"{name}-key.pem"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return signed(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def secure(certificate, tmp_path):
    path = gripper(tmp_path / "robot.db")
    words = ["--certfile", certificate[0], "--keyfile", certificate[1]]
    with Server(tmp_path, path, words=list(map(str, words))) as started:
        started.path, started.certificate = path, str(certificate[0])
        yield started


class TestTls:
    def test_the_address_says_so_and_plain_http_is_not_answered(self, secure):
        assert secure.url == f"https://127.0.0.1:{secure.port}/"
        with pytest.raises(ConnectionError):
            Calls(secure).get("/v1")

    def test_python_trusts_the_certificate_that_it_is_given_and_no_other(self, secure):
        with library.connect(secure.address, certificate=secure.certificate) as study:
            assert study.tell(31, 9.25).trial.value == 9.25
        with pytest.raises(library.InputError, match="certificate"):
            library.connect(secure.address, patience=0)
        assert trials(secure.path)[31].value == 9.25

    def test_curl_works_with_it_and_refuses_without(self, secure):
        if shutil.which("curl") is None:
            pytest.skip("curl is not installed")
        command = ["curl", "-s", "-H", f"Authorization: Bearer {secure.token}", f"{secure.url}v1"]
        found = subprocess.run([*command, "--cacert", secure.certificate], capture_output=True)
        assert b'"may_write": true' in found.stdout
        assert subprocess.run(command, capture_output=True).returncode == 60  # nobody signed it

    def test_a_worker_works_through_it(self, secure, tmp_path, monkeypatch):
        (tmp_path / "own.py").write_text(ROLLOUT)
        monkeypatch.chdir(tmp_path)
        words = ["--episodes", "2", "--certificate", secure.certificate]
        done = recoup("work", secure.address, "own:rollout", *words)
        assert done.returncode == 0, done.stderr
        assert "2 results told." in done.stdout

    def test_a_browser_logs_in_tells_and_hears_what_others_tell(self, secure):
        with browsing() as browser, opened(browser, secure, ignore_https_errors=True) as page:
            card(page, 31).get_by_label("Return").fill("9.25")
            card(page, 31).get_by_label("Return").press("Enter")
            card(page, 31).wait_for(state="detached")
            with library.Study.open(secure.path) as study:
                study.tell(32, 9.0)
            card(page, 32).wait_for(state="detached")

    def test_it_warns_of_nothing_and_stops_in_order(self, secure):
        assert secure.stop() == 130
        assert secure.errors.read_text() == "recoup: stopped.\n"

    def test_a_key_that_is_missing_or_of_another_certificate_is_refused(
        self, certificate, tmp_path, monkeypatch
    ):
        gripper(tmp_path / "robot.db", results=1)
        monkeypatch.chdir(tmp_path)
        other = signed(tmp_path, "lab")
        for words in (
            [certificate[0]],  # no key in it
            [certificate[0], "--keyfile", other[1]],
            [certificate[0], "--keyfile", "none.pem"],
            ["none.pem", "--keyfile", certificate[1]],
        ):
            found = recoup("serve", "robot.db", "--certfile", *map(str, words))
            assert found.returncode != 0
            assert "cannot be used" in found.stderr
            assert "Traceback" not in found.stderr
            assert found.stdout == ""


@pytest.mark.skipif(not LOOPS, reason="127.0.0.2 is an address of every machine on Linux alone")
class TestHosts:
    @pytest.fixture
    def elsewhere(self, tmp_path):
        path = gripper(tmp_path / "robot.db")
        with Server(tmp_path, path, words=["--host", "127.0.0.2"]) as started:
            started.path = path
            yield started

    def test_another_address_is_listened_on_and_without_tls_it_is_said_what_that_means(
        self, elsewhere
    ):
        assert elsewhere.url == f"http://127.0.0.2:{elsewhere.port}/"
        with library.connect(elsewhere.address) as study:
            assert study.tell(31, 9.25).trial.value == 9.25
        with pytest.raises(ConnectionRefusedError):
            Calls(elsewhere).get("/v1")  # 127.0.0.1: it listens there not
        assert elsewhere.errors.read_text().startswith("warning: 127.0.0.2 ")
        assert WARNING in elsewhere.errors.read_text()

    def test_a_browser_works_there_too(self, elsewhere):
        with browsing() as browser, opened(browser, elsewhere) as page:
            card(page, 31).get_by_label("Return").fill("9.25")
            card(page, 31).get_by_label("Return").press("Enter")
            card(page, 31).wait_for(state="detached")

    def test_at_every_address_numbers_are_served_and_names_of_others_are_not(self, tmp_path):
        path = gripper(tmp_path / "robot.db", results=1)
        with Server(tmp_path, path, words=["--host", "0.0.0.0"]) as server:
            assert server.url == f"http://127.0.0.1:{server.port}/"
            assert "warning: 0.0.0.0 " in server.errors.read_text()
            library.connect(f"http://127.0.0.2:{server.port}/", token=server.token).close()
            calls = Calls(server)
            for host, status in {"127.0.0.3": 200, "evil.example": 403, "localhost": 200}.items():
                said = {"Host": f"{host}:{server.port}"}
                assert calls("GET", "/v1", headers=said).status == status

    def test_with_tls_nothing_is_warned_of(self, tmp_path):
        path = gripper(tmp_path / "robot.db", results=1)
        files = signed(tmp_path, "127.0.0.2")
        words = ["--host", "127.0.0.2", "--certfile", files[0], "--keyfile", files[1]]
        with Server(tmp_path, path, words=list(map(str, words))) as server:
            library.connect(server.address, certificate=str(files[0])).close()
            assert server.errors.read_text() == ""


@pytest.mark.parametrize("host", ["nobody.invalid", "not an address", "999.1.1.1"])
def test_a_host_that_is_none_is_refused_in_a_sentence(tmp_path, monkeypatch, host):
    gripper(tmp_path / "robot.db", results=1)
    monkeypatch.chdir(tmp_path)
    found = recoup("serve", "robot.db", "--host", host, "--port", "0")
    assert found.returncode != 0
    assert "cannot be listened on" in found.stderr
    assert "Traceback" not in found.stderr
