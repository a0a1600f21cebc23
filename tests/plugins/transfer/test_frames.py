"""Files of concatenated frames are read without trusting what they claim."""

from __future__ import annotations

import io
import os

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from heald_transfer.frames import LIMIT, BadFrame, Frame, compress, frames


def read(data: bytes) -> list[Frame]:
    return list(frames(io.BytesIO(data)))


CONTENTS = [b"", b"a", b"one\ntwo\n" * 30_000, os.urandom(300_000), bytes(1_000_000)]


def test_every_frame_comes_back_in_order() -> None:
    assert [frame.content for frame in read(b"".join(map(compress, CONTENTS)))] == CONTENTS


def test_skippable_frames_are_passed_over() -> None:
    skipped = (0x184D2A53).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"xyz"
    found = read(compress(b"a") + skipped + compress(b"b") + skipped)
    assert [frame.content for frame in found] == [b"a", b"b"]


@given(st.data())
def test_a_file_cut_anywhere_gives_its_whole_frames_and_one_torn_one(data: st.DataObject) -> None:
    whole = [b"first\n" * 10, b"second\n" * 40_000]
    first, second = map(compress, whole)
    cut = data.draw(st.integers(1, len(first + second) - 1))
    found = read((first + second)[:cut])
    assert [frame.torn for frame in found[:-1]] == [False] * (len(found) - 1)
    assert found[-1].torn is (cut != len(first))
    assert b"".join(whole).startswith(b"".join(frame.content for frame in found))


@pytest.mark.parametrize("zeros", [1, 4, 17, 18, 4096])
def test_zeros_after_the_end_are_a_torn_write(zeros: int) -> None:
    *whole, last = read(compress(b"a") + bytes(zeros))
    assert ([frame.content for frame in whole], last) == ([b"a"], Frame(b"", torn=True))


def test_a_small_frame_that_claims_too_much_is_refused() -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(LIMIT + 1))
    assert len(bomb) < 20_000
    with pytest.raises(BadFrame, match="claims 268435457 bytes"):
        read(bomb)


def test_a_frame_that_holds_more_than_it_claims_is_refused() -> None:
    honest = zstandard.ZstdCompressor(write_checksum=False).compress(bytes(100_000_000))
    size = zstandard.get_frame_parameters(honest).content_size.to_bytes(4, "little")
    lying = honest.replace(size, (1000).to_bytes(4, "little"), 1)
    with pytest.raises(BadFrame, match="is damaged"):
        read(lying)


def test_a_frame_that_does_not_say_how_much_it_holds_is_refused() -> None:
    silent = zstandard.ZstdCompressor(write_content_size=False).compress(b"a" * 1000)
    with pytest.raises(BadFrame, match="does not say"):
        read(silent)


def test_a_flipped_bit_is_damage_and_no_torn_write() -> None:
    data = bytearray(compress(b"a" * 1000) + compress(b"b"))
    data[12] ^= 1
    with pytest.raises(BadFrame):
        read(bytes(data))


def test_other_files_are_refused() -> None:
    with pytest.raises(BadFrame, match="at byte 0 is no zstd frame"):
        read(b"root:x:0:0:root:/root:/bin/bash\n")
