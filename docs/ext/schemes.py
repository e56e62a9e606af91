"""Pictures in light and dark: a page that shows `NAME-light.png` holds `NAME-dark.png` too.

It shows the one of its scheme. Plots that have no dark one are turned by the style sheet: `plots`
in conf.py names them.
"""

from fnmatch import fnmatch
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

LIGHT, DARK = "-light", "-dark"


def dark_of(uri, page):
    """The address of the dark picture that lies beside a light one; None where there is none."""
    stem, dot, ending = uri.rpartition(".")
    other = f"{stem.removesuffix(LIGHT)}{DARK}{dot}{ending}"
    return other if stem.endswith(LIGHT) and (page.parent / other).exists() else None


class BothSchemes(SphinxTransform):
    """Puts the dark picture behind each light one."""

    default_priority = 200  # before pictures are collected

    def apply(self, **given):
        page = Path(self.env.doc2path(self.env.docname))
        for light in list(self.document.findall(nodes.image)):
            other = dark_of(light.get("uri", ""), page)
            if any(fnmatch(light.get("uri", ""), name) for name in self.config.plots):
                light["classes"].append("plot")
            if other is not None:
                dark = light.deepcopy()
                dark["uri"] = other
                light["classes"].append("only-light")
                dark["classes"].append("only-dark")
                light.parent.insert(light.parent.index(light) + 1, dark)


def setup(app):
    app.add_config_value("plots", [], "env")
    app.add_transform(BothSchemes)
    return {"parallel_read_safe": True}
