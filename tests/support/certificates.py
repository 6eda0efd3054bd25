# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Certificates for servers of tests."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

START = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
END = datetime.datetime(2049, 1, 1, tzinfo=datetime.timezone.utc)


class Authority:
    """One that signs certificates of servers."""

    def __init__(self, name: str) -> None:
        self._name, self._key = _named(name), ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(self._name, self._key.public_key())
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        signed = builder.add_extension(constraints, critical=True).sign(self._key, hashes.SHA256())
        self.certificate = signed.public_bytes(serialization.Encoding.DER)

    def server(self, folder: Path, address: str) -> ssl.SSLContext:
        """What a server at an address needs."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        builder = self._builder(_named(address), key.public_key()).add_extension(names, critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path = folder / "server.pem"
        path.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + private)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder(self._name, name, key, x509.random_serial_number())
        return builder.not_valid_before(START).not_valid_after(END)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
