"""Old addresses: of pages that are elsewhere now, and of sections that were on a page.

`moved_pages` in conf.py names the pages, which are in no table of contents, and not searched. Each
keeps its old headings with a link below each. `moved_sections` names the pages that list the
sections which they had: an empty anchor, then a link. An old address follows its link by itself.
"""


def mark(app, doctree):
    """Leaves an old page out of search and of the tables of contents."""
    if app.env.docname in app.config.moved_pages:
        app.env.metadata[app.env.docname] |= {"orphan": True, "nosearch": True}


def lead_on(app, pagename, templatename, context, doctree):
    """Gives a page the script that follows the link of the old address that was asked for."""
    if pagename in app.config.moved_pages:
        app.add_js_file("moved.js", **{"data-whole": "true"})
    elif pagename in app.config.moved_sections:
        app.add_js_file("moved.js")


def setup(app):
    app.add_config_value("moved_pages", [], "html")
    app.add_config_value("moved_sections", [], "html")
    app.connect("doctree-read", mark)
    app.connect("html-page-context", lead_on)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
