"""Requests over kept connections, as many as the server answers: latencies and their rate."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field


@dataclass
class Load:
    latencies: list[float] = field(default_factory=list[float])
    """In milliseconds."""
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    @property
    def p99(self) -> float:
        return sorted(self.latencies)[len(self.latencies) * 99 // 100]


def load(port: int, path: str, token: str, *, connections: int, requests: int) -> Load:
    """`requests` on each of so many connections."""
    return asyncio.run(_load(port, path, token, connections, requests))


async def _load(port: int, path: str, token: str, connections: int, requests: int) -> Load:
    found = Load()
    request = (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    )
    begin = time.perf_counter()
    await asyncio.gather(*(_one(port, request, requests, found) for _ in range(connections)))
    found.seconds = time.perf_counter() - begin
    return found


async def _one(port: int, request: bytes, requests: int, found: Load) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(requests):
        begin = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        await reader.readexactly(_length(head))
        found.latencies.append((time.perf_counter() - begin) * 1000)
    writer.close()


def _length(head: bytes) -> int:
    lowered = head.lower()
    start = lowered.index(b"content-length:") + 15
    return int(lowered[start : lowered.index(b"\r\n", start)])
