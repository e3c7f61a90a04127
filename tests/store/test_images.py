from weakspot.data.locations import read_location
from weakspot.store import images
from weakspot.store.images import ImagePack


def real(address, folder):
    return address.replace("weakspot-pack:", f"{folder.parent}/")


def test_append__read_back(tmp_path):
    pack = ImagePack(tmp_path)
    first, second = pack.append(b"one"), pack.append(b"three")
    pack.flush()
    assert first == f"weakspot-pack:{tmp_path.name}/images-0000.bin#bytes=0-3"
    assert read_location(real(first, tmp_path)) == b"one"
    assert read_location(real(second, tmp_path)) == b"three"
    pack.close()


def test_cut_back__torn_tail_is_gone(tmp_path):
    pack = ImagePack(tmp_path)
    pack.append(b"keep")
    position = pack.position
    pack.append(b"torn")
    pack.close()
    resumed = ImagePack(tmp_path)
    resumed.cut_back(position)
    address = resumed.append(b"new")
    resumed.close()
    assert (tmp_path / "images-0000.bin").read_bytes() == b"keepnew"
    assert address.endswith("#bytes=4-3")


def test_append__next_file_when_full(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "FULL_PACK_BYTES", 6)
    pack = ImagePack(tmp_path)
    for content in (b"abcd", b"efgh", b"ij", b"an image larger than a file"):
        pack.append(content)
    pack.close()
    assert [path.read_bytes() for path in sorted(tmp_path.glob("*.bin"))] == [
        b"abcd",
        b"efghij",
        b"an image larger than a file",
    ]
    pack.cut_back((1, 4))
    assert [path.read_bytes() for path in sorted(tmp_path.glob("*.bin"))] == [b"abcd", b"efgh"]
