"""A server for other machines: nothing travels in the clear."""

from __future__ import annotations

import http.client
import ssl
from pathlib import Path

import pytest
import trustme

from cli.harness import Place

from .program import ServerProgram

HOST = "127.0.0.1"


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """Certificates for this machine: the server's two files, and the authority's to trust it by."""
    folder = tmp_path / "tls"
    folder.mkdir()
    made = trustme.CA()
    certificate = made.issue_cert(HOST)
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    made.cert_pem.write_to_path(folder / "ca.pem")
    return folder


def test_commands_and_browsers_over_tls(place: Place, authority: Path) -> None:
    files = ("--tls-cert", str(authority / "cert.pem"), "--tls-key", str(authority / "key.pem"))
    with ServerProgram(place, *files) as program:
        assert program.url == f"https://{HOST}:{program.port}"
        trusting = {"SSL_CERT_FILE": str(authority / "ca.pem")}
        listed = place.run("--server", program.url, "list", "--json", env=trusting)
        assert (listed.code, listed.data) == (0, []), listed
        place.run("--server", program.url, "list", env={"SSL_CERT_FILE": ""}).failed(
            1, error="certificate", hint="SSL_CERT_FILE"
        )
        context = ssl.create_default_context(cafile=authority / "ca.pem")
        browser = http.client.HTTPSConnection(HOST, program.port, timeout=30, context=context)
        browser.request("GET", "/api/health", headers={"Authorization": f"Bearer {program.token}"})
        status = browser.getresponse().status
        browser.close()
        assert status == 200


def test_plain_words_to_a_server_with_tls_are_not_answered(place: Place, authority: Path) -> None:
    files = ("--tls-cert", str(authority / "cert.pem"), "--tls-key", str(authority / "key.pem"))
    with ServerProgram(place, *files) as program:
        plain = program.url.replace("https", "http")
        place.run("--server", plain, "list").failed(1, error="cannot be reached", hint="holdfast serve")
