"""Checksums of kept sweep files, against a CRC32C computed bit by bit."""

from __future__ import annotations

import tomllib

from mkldist.results.folder import OutputFolder, claimed
from mkldist.run.saved_inputs import SavedInputs, fits_checksum_header, with_checksum_header
from mkldist.run.verify import verify

TEXT = 'name = "Äpfel"\nseed = 3\n'


def crc32c(content: bytes) -> int:
    """Return the CRC with the reflected polynomial of Castagnoli, a bit at a time."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_the_first_line_holds_the_checksum_of_the_others():
    first, below = with_checksum_header(TEXT).decode().split("\n", 1)
    digits = crc32c(TEXT.encode()).to_bytes(4, "little").hex()
    assert (first, below) == (f"# checksum of the lines below: crc32c:{digits}", TEXT)
    assert tomllib.loads(with_checksum_header(TEXT).decode()) == {"name": "Äpfel", "seed": 3}


def test_every_flipped_bit_and_every_cut_is_found():
    whole = with_checksum_header(TEXT)
    assert fits_checksum_header(whole) is True
    flipped = [bytearray(whole) for _ in range(8 * len(whole))]
    for place, content in enumerate(flipped):
        content[place // 8] ^= 1 << place % 8
    # A file that no longer begins with a comment counts as one of the user; TOML refuses it.
    assert {fits_checksum_header(bytes(content)) for content in flipped[:8]} == {None}
    assert not any(fits_checksum_header(bytes(content)) for content in flipped[8:])
    assert not any(fits_checksum_header(whole[:end]) for end in range(len(whole)))


def test_a_file_of_the_user_has_no_checksum():
    assert fits_checksum_header(TEXT.encode()) is None


def test_verify_tells_of_words_that_were_changed(tmp_path):
    with claimed(tmp_path / "out", "mine") as folder:
        SavedInputs(TEXT, {}).write(folder)
    file = OutputFolder(tmp_path / "out").sweep_file
    (words,) = (one for one in verify(tmp_path / "out") if one.kind == "words")
    assert (words.files, words.damaged, words.note) == (1, (), "")
    file.write_bytes(file.read_bytes().replace(b"seed = 3", b"seed = 1"))
    (words,) = (one for one in verify(tmp_path / "out") if one.kind == "words")
    assert words.damaged == (str(file),)
    assert "changed by hand" in words.note
    file.write_bytes(file.read_bytes().split(b"\n", 1)[1])
    (words,) = (one for one in verify(tmp_path / "out") if one.kind == "words")
    assert (words.damaged, words.note) == ((), "without a checksum")
