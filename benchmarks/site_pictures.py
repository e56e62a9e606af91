"""Screenshots of the main pages of the documentation: on a desk, on a phone, in the dark.

make docs
python -m benchmarks.site_pictures site runs/site-pictures
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

PAGES = (
    *("index", "learn/index", "do/by-hand", "understand/weights", "lookup/glossary"),
    *("notebooks/estimators", "benchmarks"),
)
LOOKS = {  # name -> width, height, scheme
    "desktop": (1280, 900, "light"),
    "phone": (390, 844, "light"),
    "dark": (1280, 900, "dark"),
}


def main(site, folder):
    site, folder = Path(site).resolve(), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--disable-gpu"], chromium_sandbox=False
        )
        for look, (width, height, scheme) in LOOKS.items():
            view = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
            page = browser.new_context(**view).new_page()
            for name in PAGES:
                page.goto((site / f"{name}.html").as_uri())
                page.screenshot(path=folder / f"{name.replace('/', '-')}-{look}.png")
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
