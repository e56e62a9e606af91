"""Works on a study until it has so many results.

`python study_worker.py FILE METHOD RESULTS [SETTING=WORD...]`.

Asks for two trials at a time and tells them in a fixed odd order; every fifth trial fails.
"""

import sys
import time

import numpy as np

from recoup.study.study import Study


def value_of(trial):
    return float(-np.sum((trial.theta - 0.5) ** 2)) + (trial.seed % 1000) / 1e4


def main(path, method, results, settings):
    how = {"dim": 3, "method": method, "batch": 4, "seed": 5, "std": 0.7, **settings}
    with Study.open(path, **how) as study:
        while True:
            waiting = study.pending()
            if not waiting:
                if study.counts()["ok"] + study.counts()["failed"] >= results:
                    return
                waiting = study.ask(2)
            trial = waiting[-1]
            time.sleep(0.003)
            if trial.id % 5 == 0:
                study.tell(trial.id, failed="slipped")
            else:
                study.tell(trial.id, value_of(trial))


if __name__ == "__main__":
    words = dict(word.split("=") for word in sys.argv[4:])
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), words)
