import pyarrow as pa

from weakspot.store.array_files import folder_name, packed_hashes

ONE = "00112233445566778899aabbccddeeff"
TWO = "ff000000000000000000000000000000"


def test_folder_name__readable_and_different():
    assert folder_name("a/b").startswith("a-b-")
    assert folder_name("a/b") != folder_name("a-b")
    assert "/" not in folder_name("../../etc/passwd")
    assert len(folder_name("x" * 500)) < 64


def test_packed_hashes__slices_and_chunks():
    whole = pa.array([ONE, TWO, ONE])
    chunked = pa.chunked_array([whole.slice(1, 2), pa.array([], pa.string()), whole.slice(0, 1)])
    assert packed_hashes(chunked).tolist() == [
        packed_hashes(pa.array([text]))[0] for text in (TWO, ONE, ONE)
    ]


def test_packed_hashes__any_other_text():
    packed = packed_hashes(pa.array(["a", "b", "a", ONE.upper()]))
    assert packed[0] == packed[2]
    assert len(set(packed.tolist())) == 3
