"""A served study beside the library, in one run: `python -m benchmarks.serve [TRIALS [SECONDS]]`.

How long it takes to start, to read columns, to judge, to tell from several clients at once and
while a move is being made, and what streams cost in so many SECONDS (300 for the whole of it); each
with the processor's time of the server, for the machine may be busy.
"""

import concurrent.futures
import gzip
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import recoup.serve
from recoup.store import codec
from recoup.store.rows import DRAWN, OK, Asked, Result, Told
from recoup.study.study import Study

PARAMETERS, CLIENTS, EACH = 20, 8, 50
STREAMS, A_SECOND, WARM = (
    8,
    10,
    100,
)  # streams; results a second; results before memory is looked at
PAGE = Path(recoup.serve.__file__).parent / "page"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
PAINTED = """() => new Promise((done) => new PerformanceObserver((list) =>
  list.getEntriesByName("first-contentful-paint").forEach((one) => done(one.startTime))
).observe({ type: "paint", buffered: true }))"""
SHOWN = """what => [...document.querySelectorAll(what)].some((one) => one.matches("canvas, tr")
  || /\\d/.test(one.textContent)) && performance.now()"""
PROGRAM = "from recoup.__main__ import main; main()"
TICKS = os.sysconf("SC_CLK_TCK")


class Served:
    """A server of one file, and requests to it."""

    def __init__(self, path):
        begun = time.perf_counter()
        words = [sys.executable, "-c", PROGRAM, "serve", str(path), "--port", "0"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        address = self.process.stdout.readline().split()[0]
        self.started = time.perf_counter() - begun
        self.port = int(address.split(":")[2].split("/")[0])
        self.token, self.base = address.partition("token=")[2], f"/v1/studies/{path.stem}"
        self.kept = threading.local()

    def call(self, method, path, body=None):
        """An answer as bytes, by a connection of the thread's own."""
        if not hasattr(self.kept, "connection"):
            self.kept.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
            self.kept.connection.connect()
            self.kept.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body)
        try:
            self.kept.connection.request(method, f"{self.base}{path}", content, headers)
            answered = self.kept.connection.getresponse()
        except ConnectionError:  # it was quiet for long, and the server has closed it
            del self.kept.connection
            return self.call(method, path, body)
        found = answered.read()
        assert answered.status == 200, found
        return found

    def spent(self):
        """Seconds of the processor that the server has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self):
        """Bytes of memory that the server has."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def events(self):
        """The events of a stream of its own, each as its number and what it says."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        how = {"Authorization": f"Bearer {self.token}"}
        connection.request("GET", f"{self.base}/events", headers=how)
        answered, number = connection.getresponse(), None
        while line := answered.readline().decode():
            if line.startswith("id: "):
                number = int(line[4:])
            elif line.startswith("data: "):
                yield number, json.loads(line[6:])

    def stop(self):
        """Ctrl-C; how long it takes."""
        begun = time.perf_counter()
        self.process.send_signal(2)
        self.process.wait()
        return time.perf_counter() - begun


def large(path, n, dim):
    """A study of `n` results, written as no search would write them."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(n, dim))
    values = -np.sum((theta - 0.5) ** 2, axis=1)
    with Study.open(path, dim=dim, batch=n + 1) as study:
        store = study.store
        with store.writing():
            store.add_trials([Asked(i, DRAWN, 0, theta[i - 1], i) for i in range(1, n + 1)])
            told = [Told(OK, float(value), None, 1) for value in values]
            rows = [Result(i, one, i, 1e9 + i) for i, one in enumerate(told, 1)]
            store._file.insert("told", map(codec.of_result, rows))
            store._now = store.counters()._replace(ok=n, counted=n, fresh=n)


def timed(what, server, of, *words):
    """Prints how long a request takes, the first time and again."""
    for when in ("first", "again"):
        before, begun = server.spent(), time.perf_counter()
        size = len(of(*words))
        wall = time.perf_counter() - begun
        print(f"  {what}, {when}: {wall:.2f} s ({server.spent() - before:.2f} s of CPU, {size} B)")


def columns(folder, n):
    """What a page loads of many trials."""
    path = folder / "large.db"
    large(path, n, PARAMETERS)
    server = Served(path)
    print(f"listens after {server.started:.2f} s (target 1.5; CPU {server.spent():.2f} s)")
    print(f"{n} trials x {PARAMETERS} (target 2 s):")
    places = ("", "/points?width=1600", "/points?params=*", "/trials?limit=1000", "/moves")
    for place in (*places, "/snapshot"):
        timed(place or "the study", server, server.call, "GET", place)
    print(f"stops after {server.stop():.2f} s (target 2)")
    painting(path)


def painting(path):
    """When a browser shows something of the page of such a study, and when the study itself.

    Of a server that was just started, and has read nothing of the file but what the list shows.
    """
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        print("  the page: not looked at, without Playwright and Chromium")
        return
    server = Served(path)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.port}/#token={server.token}")
        page.wait_for_selector(".overview")
        page.goto(f"http://127.0.0.1:{server.port}/?#/study/{path.stem}/see")
        before, found = server.spent(), [page.evaluate(PAINTED)]
        for what in (".bar-study .soft", ".plot canvas", ".trials tbody tr"):
            shown = page.wait_for_function(SHOWN, arg=what, timeout=600_000)
            found.append(shown.json_value())
        browser.close()
    cpu = server.spent() - before
    server.stop()
    painted, counted, drawn, listed = (one / 1000 for one in found)
    print(f"  the page, in Chromium: first contentful paint {painted:.2f} s (target 2)")
    words = f"  the study's numbers {counted:.2f} s, points {drawn:.2f} s, table {listed:.2f} s"
    print(f"{words} ({cpu:.2f} s of CPU of the server)")


def sizes():
    """What all that the page loads takes, compressed."""
    loaded = [one for one in PAGE.rglob("*") if one.suffix in {".js", ".css", ".html", ".svg"}]
    size = sum(len(gzip.compress(one.read_bytes())) for one in loaded)
    print(f"the page: {size / 1000:.0f} kB in {len(loaded)} files, compressed (target 150)")


def judging(folder, n, dim):
    """What the page asks when a slider rests."""
    path = folder / f"judged-{n}.db"
    large(path, n, dim)
    server = Served(path)
    newest = json.loads(server.call("GET", ""))["mean"]
    print(f"evaluate, {n} x {dim}:")
    for what, shift in (("the newest", None), ("another", 0.1), ("a third", 0.2)):
        body = {} if shift is None else {"mean": {k: x + shift for k, x in newest.items()}}
        timed(what, server, server.call, "POST", "/evaluate", body)
    server.stop()


def streaming(folder, seconds):
    """Streams that hear of results, and what they cost in memory."""
    path = folder / "streams.db"
    Study.open(path, dim=6, batch=10).close()
    server, n = Served(path), WARM + int(seconds * A_SECOND)
    heard, ready = [[] for _ in range(STREAMS)], threading.Semaphore(0)

    def listen(mine):
        for number, said in server.events():
            mine.append(number)
            ready.release() if len(mine) == 1 else None
            if said["counts"]["ok"] == n and said["until_move"]:
                return

    threads = [threading.Thread(target=listen, args=(mine,)) for mine in heard]
    for thread in threads:
        thread.start()
        ready.acquire()
    before = 0
    for number in range(1, n + 1):
        begun = time.perf_counter()
        if number == WARM:
            before = server.memory()
        (trial,) = json.loads(server.call("POST", "/ask", {"lease": None}))["trials"]
        server.call("POST", f"/trials/{trial['id']}/tell", {"return": -float(number % 17)})
        time.sleep(max(1 / A_SECOND - (time.perf_counter() - begun), 0) if number > WARM else 0)
    for thread in threads:
        thread.join(60)
    grown = (server.memory() - before) / 1e6
    once = all(len(set(mine)) == len(mine) for mine in heard)
    all_of_them = all(mine[-1] == heard[0][-1] and set(mine) <= set(heard[0]) for mine in heard)
    missing = max(len(set(heard[0]) - set(mine) - _before(heard[0], mine)) for mine in heard)
    print(
        f"{STREAMS} streams for {seconds} s at {A_SECOND} results a second: memory grew by "
        f"{grown:.1f} MB (target 5), {len(heard[0])} events, twice: {'none' if once else 'some'}, "
        f"missing: {missing if all_of_them else 'the last'}"
    )
    server.stop()


def _before(all_of_them, mine):
    """Events that came before a stream was opened."""
    return {number for number in all_of_them if number < mine[0]}


def quantiles(seconds):
    """In words."""
    p50, p99 = np.quantile(seconds, [0.5, 0.99]) * 1000
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, {len(seconds)} results"


def telling(folder, batch, words):
    """Several clients that tell as fast as they can."""
    path = folder / f"tell-{batch}.db"
    Study.open(path, dim=6, batch=batch).close()
    server = Served(path)
    asked = json.loads(server.call("POST", "/ask", {"n": CLIENTS * EACH, "lease": None}))
    ids = [trial["id"] for trial in asked["trials"]]

    def work(mine):
        found = []
        for number in mine:
            begun = time.perf_counter()
            server.call("POST", f"/trials/{number}/tell", {"return": -float(number % 17)})
            found.append(time.perf_counter() - begun)
        return found

    begun, before = time.perf_counter(), server.spent()
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        each = list(pool.map(work, (ids[i::CLIENTS] for i in range(CLIENTS))))
    took, cpu = time.perf_counter() - begun, server.spent() - before
    seconds = [x for one in each for x in one]
    print(
        f"{words}: {len(ids) / took:.0f} a second ({1000 * cpu / len(ids):.1f} ms of CPU each); "
        f"{quantiles(seconds)}"
    )
    moves = json.loads(server.call("GET", ""))["moves"]
    print(f"  {moves} moves were made meanwhile")
    server.stop()


LIBRARY = """
import sys
from recoup.study.study import Study
with Study.open(sys.argv[1]) as study:
    print("here", flush=True)
    sys.stdin.readline()
    for number in map(int, sys.argv[2].split(",")):
        study.tell(number, -float(number % 17))
"""


def by_library(folder, batch, words):
    """The same by as many processes of the library, which make the moves themselves."""
    path = folder / f"library-{batch}.db"
    with Study.open(path, dim=6, batch=batch) as study:
        ids = [trial.id for trial in study.ask(CLIENTS * EACH)]
    workers = []
    for i in range(CLIENTS):
        listed = ",".join(map(str, ids[i::CLIENTS]))
        program = [sys.executable, "-c", LIBRARY, str(path), listed]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        workers.append(subprocess.Popen(program, **pipes))
    for worker in workers:
        worker.stdout.readline()
    begun = time.perf_counter()
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    ended = [worker.wait() for worker in workers]
    if any(ended):
        print(f"{words}: one of them gave up, the machine is too busy")
        return
    took = time.perf_counter() - begun
    with Study.open(path, read_only=True) as study:
        moves = len(study.history())
    print(f"{words}: {len(ids) / took:.0f} a second; {moves} moves")


def main(n=100_000, seconds=10):
    """Prints all figures."""
    print("a served study:")
    sizes()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        columns(folder, n)
        judging(folder, 1000, 6)
        judging(folder, 10_000, 20)
        streaming(folder, seconds)
        for batch, words in ((10**6, ""), (10, ", with moves")):
            by_library(folder, batch, f"{CLIENTS} processes of the library{words}")
            telling(folder, batch, f"{CLIENTS} clients of a server{words} (target p99 50 ms, half)")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
