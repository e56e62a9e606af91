"""Small tables for notebooks."""

from recoup.notebooks import facts, grid


def test_every_text_is_escaped():
    html = facts("<b>", {"<script>": "</td>&"}) + grid(["<i>"], [["<u>"]])
    for text in ("<b>", "<script>", "</td>&", "<i>", "<u>"):
        assert text not in html.replace("<div><b>", "").replace("</b>", "")
