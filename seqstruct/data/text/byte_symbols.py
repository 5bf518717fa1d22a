"""Bytes as symbols of a dictionary: texts at the level of bytes, and images."""

from __future__ import annotations

SPECIAL = 4  # fairseq's own symbols, before all others
SYMBOLS = tuple(chr(byte) if 33 <= byte <= 126 else f"<0x{byte:02X}>" for byte in range(256))
_BYTES = {symbol: byte for byte, symbol in enumerate(SYMBOLS)}


def spell(content: bytes) -> list[str]:
    """The symbol of each byte: a visible character of ASCII stands for itself."""
    return [SYMBOLS[byte] for byte in content]


def unspell(symbols: list[str]) -> bytes:
    """The bytes again.  Raises ValueError on a symbol that stands for none."""
    unknown = [symbol for symbol in symbols if symbol not in _BYTES]
    if unknown:
        raise ValueError(f"expected symbols of bytes, got {unknown[0]!r}")
    return bytes(_BYTES[symbol] for symbol in symbols)
