"""The numbers that the paper prints (Tables I and II). Its figures give no numbers."""

from __future__ import annotations

from cafe.reproduce.rows import Row

_AWU = {  # share of biased clients: MCU, AWU
    0.05: (0.812, 0.744),
    0.10: (0.788, 0.762),
    0.15: (0.488, 0.734),
    0.20: (0.46, 0.747),
    0.30: (0.1, 0.668),
}
_AGU = {  # quorum: MCU, AGU
    27: (0.938, 0.932),
    29: (0.926, 0.917),
    31: (0.892, 0.915),
    33: (0.851, 0.902),
    35: (0.785, 0.884),
}

TABLE_AWU: list[Row] = [
    {"share": share, "policy": policy, "accuracy": accuracy}
    for share, pair in _AWU.items()
    for policy, accuracy in zip(("mcu", "awu"), pair, strict=True)
]
TABLE_AGU: list[Row] = [
    {"quorum": quorum, "policy": policy, "accuracy": accuracy}
    for quorum, pair in _AGU.items()
    for policy, accuracy in zip(("mcu", "agu"), pair, strict=True)
]
