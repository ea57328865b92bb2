"""Reference implementation of RFC 6962, section 2.1, word by word."""

from collections.abc import Sequence
from hashlib import sha256

RECORDS = tuple(
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
)
"""The shared example of RFC 6962 implementations, with roots and proofs below."""
ROOTS = tuple(
    bytes.fromhex(text)
    for text in (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    )
)
"""By the number of leaves."""
INCLUSION = {
    (0, 1): "",
    (0, 8): "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7"
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    (5, 8): "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"
    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    (2, 3): "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    (1, 5): "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"
    "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
}
"""By index and size."""
CONSISTENCY = {
    (1, 1): "",
    (1, 8): "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7"
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    (6, 8): "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a"
    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    (2, 5): "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"
    "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
}
"""By old size and new size."""


def records(count: int) -> list[bytes]:
    """This many different records."""
    return [b'{"seq":%d}' % seq for seq in range(1, count + 1)]


def root(data: Sequence[bytes]) -> bytes:
    """MTH(D[n])."""
    if not data:
        return sha256(b"").digest()
    if len(data) == 1:
        return sha256(b"\x00" + data[0]).digest()
    k = split(len(data))
    return sha256(b"\x01" + root(data[:k]) + root(data[k:])).digest()


def inclusion(m: int, data: Sequence[bytes]) -> tuple[bytes, ...]:
    """PATH(m, D[n])."""
    if len(data) == 1:
        return ()
    k = split(len(data))
    if m < k:
        return (*inclusion(m, data[:k]), root(data[k:]))
    return (*inclusion(m - k, data[k:]), root(data[:k]))


def consistency(m: int, data: Sequence[bytes], known: bool = True) -> tuple[bytes, ...]:
    """PROOF(m, D[n]) = SUBPROOF(m, D[n], true)."""
    if m == len(data):
        return () if known else (root(data),)
    k = split(len(data))
    if m <= k:
        return (*consistency(m, data[:k], known), root(data[k:]))
    return (*consistency(m - k, data[k:], False), root(data[:k]))


def split(size: int) -> int:
    """The largest power of two that is less than the size."""
    k = 1
    while 2 * k < size:
        k *= 2
    return k
