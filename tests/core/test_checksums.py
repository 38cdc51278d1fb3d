"""Checksums of content, and footers that fit their body alone."""

from __future__ import annotations

import numpy as np

from mkldist.core.checksums import Footer, crc32c


def test_the_checksum_is_crc32c():
    # The check value of the Castagnoli polynomial.
    assert crc32c([b"123456789"]) == (0xE3069283).to_bytes(4, "little")
    assert crc32c([b"1234", np.frombuffer(b"56789", np.uint8)]) == crc32c([b"123456789"])


def test_a_footer_fits_its_body_alone():
    footer = Footer(b"magic 1\0")
    content = b"body" + footer.of([b"bo", b"dy"])
    assert footer.body(content) == b"body"
    assert footer.n_bytes == len(content) - 4
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        assert footer.body(bytes(changed)) is None
        assert footer.body(content[:place]) is None
    assert Footer(b"magic 2\0").body(content) is None
