"""Pictures that nobody looks at: composed as always, and not rendered, which takes most of it."""

import base64
import contextlib
import struct
import zlib
from pathlib import Path
from unittest import mock

from matplotlib.figure import Figure

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
HEADER = 33  # bytes of a PNG file before what is said of it


def pixel(metadata):
    """One pixel that says of itself what `metadata` says."""
    chunks = b""
    for key, text in (metadata or {}).items():
        content = b"tEXt" + key.encode() + b"\0" + text.encode()
        crc = struct.pack(">I", zlib.crc32(content))
        chunks += struct.pack(">I", len(content) - 4) + content + crc
    return PIXEL[:HEADER] + chunks + PIXEL[HEADER:]


@contextlib.contextmanager
def sketched(*kinds):
    """Figures are saved as one pixel, of these kinds alone ("svg") where some are named."""
    whole = Figure.savefig

    def savefig(figure, file, **how):
        kind = how.get("format") or Path(file).suffix[1:]
        if kinds and kind not in kinds:
            whole(figure, file, **how)
        elif hasattr(file, "write"):
            file.write(pixel(how.get("metadata")))
        else:
            Path(file).write_bytes(pixel(how.get("metadata")))

    with mock.patch.object(Figure, "savefig", savefig):
        yield
