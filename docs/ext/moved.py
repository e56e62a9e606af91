"""Pages that are elsewhere now: in no table of contents, and not searched.

`moved_pages` in conf.py names them. Each keeps its old headings with a link below each, which an
old address with an anchor follows by itself.
"""


def mark(app, doctree):
    """Leaves an old page out of search and of the tables of contents."""
    if app.env.docname in app.config.moved_pages:
        app.env.metadata[app.env.docname] |= {"orphan": True, "nosearch": True}


def lead_on(app, pagename, templatename, context, doctree):
    """Gives an old page the script that follows the link below the heading that was asked for."""
    if pagename in app.config.moved_pages:
        app.add_js_file("moved.js")


def setup(app):
    app.add_config_value("moved_pages", [], "html")
    app.connect("doctree-read", mark)
    app.connect("html-page-context", lead_on)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
