"""Certificates, keys and secrets."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="comes with Flower")

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key

from cafe.flower.lab import keys


def test_the_certificate_is_signed_for_this_machine_and_is_made_once(tmp_path: Path) -> None:
    keys.make_certificates(tmp_path)
    ca = x509.load_pem_x509_certificate((tmp_path / "ca.pem").read_bytes())
    server = x509.load_pem_x509_certificate((tmp_path / "server.pem").read_bytes())
    server.verify_directly_issued_by(ca)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [*map(str, names.get_values_for_type(x509.IPAddress))] == ["127.0.0.1"]
    assert {path.name for path in tmp_path.iterdir()} == {"ca.pem", "server.pem", "server.key"}
    before = (tmp_path / "server.pem").read_bytes()
    keys.make_certificates(tmp_path)
    assert (tmp_path / "server.pem").read_bytes() == before


def test_node_gets_a_new_key_each_time(tmp_path: Path) -> None:
    seen = []
    for _ in range(2):
        keys.make_node_key(tmp_path / "node.key")
        key = load_ssh_private_key((tmp_path / "node.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        seen.append((tmp_path / "node.pub").read_bytes())
        assert seen[-1].startswith(b"ecdsa-sha2-nistp384 ")
    assert seen[0] != seen[1]


def test_a_secret_is_private_and_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    keys.make_secret(path)
    first = path.read_bytes()
    assert len(first) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    keys.make_secret(path)
    assert path.read_bytes() == first
