"""How the site is built: `make docs`. A warning ends the build; nothing is fetched."""

import hashlib
import logging
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "ext"))
os.environ["JUPYTER_PATH"] = str(HERE / "ext" / "jupyter")  # a kernel that is quiet
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
logging.getLogger("traitlets").setLevel(logging.WARNING)
logging.getLogger("sphinx.sphinx.directives.other").addFilter(  # a part may have no pages yet
    lambda record: "toctree glob pattern" not in str(record.msg)
)

project = "Recoup"
author = "The authors of Recoup"
copyright = "the authors of Recoup, under Apache-2.0"
extensions = ["myst_nb", "sphinx_design", "sphinx_copybutton"]
extensions += ["mathml", "schemes", "notebooks"]
exclude_patterns = ["ext", "_static"]
plots = ["*recoup.png", "*study.png", "*compar*.png", "*toy*.png"]
plots += ["*mountain-car*.png", "*bounds.png", "*reach-2-steps.png", "*-cost.png"]
plots += ["reproduction/reach-?.png"]

html_theme = "furo"
html_title = "Recoup"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # a page that is opened as a file may not fetch others
html_use_index = False
html_last_updated_fmt = None

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4

nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_merge_streams = True

copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True


def setup(app):
    """Makes all pages again once a script that makes them is another; else only changed ones."""
    scripts = b"".join(path.read_bytes() for path in sorted((HERE / "ext").glob("*.py")))
    app.add_config_value("scripts", hashlib.sha256(scripts).hexdigest(), "env")
