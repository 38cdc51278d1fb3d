"""Sweep files that begin with the checksum of their other lines, in a comment."""

from __future__ import annotations

from mkldist.checksums import crc32c

_FIRST = "# checksum of the lines below: crc32c:"


def sealed_words(text: str) -> bytes:
    """Return the text of a sweep file, which begins with no comment, behind its checksum.

    Examples
    --------
    >>> print(sealed_words('name = "mine"').decode())
    # checksum of the lines below: crc32c:8b61b201
    name = "mine"
    """
    content = text.encode()
    return f"{_FIRST}{crc32c([content]).hex()}\n".encode() + content


def is_sealed(content: bytes) -> bool | None:
    """Return True if a file fits its checksum, False if not, None for one that has no checksum.

    A file of a version without checksums, or one of the user, begins with no comment.
    """
    if not content.startswith(b"#"):
        return None if content else False
    first, _, below = content.partition(b"\n")
    return first == f"{_FIRST}{crc32c([below]).hex()}".encode()
