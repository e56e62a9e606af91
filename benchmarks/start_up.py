"""Seconds until `import recoup` and `recoup --help` are done, as a process."""

import statistics
import subprocess
import sys
import time


def main():
    print("start-up, median of 5 processes:")
    words = {"import recoup": ["-c", "import recoup"], "recoup --help": ["-m", "recoup", "--help"]}
    for name, arguments in words.items():
        times = []
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            times.append(time.perf_counter() - start)
        print(f"  {name}: {statistics.median(times):.2f} s (target: under 1.5 s)")


if __name__ == "__main__":
    main()
