"""Many WebSocket clients and a steady writer: `listen PORT CLIENTS EVENTS`, `write FILE EVENTS RATE`.

Both print one JSON object. Clients check every number they are sent; what a message holds is
parsed once for all of them, since all are sent the same bytes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import lru_cache

TOKEN = "token-of-the-benchmark-0123456789abcdefghij"  # noqa: S105
_AT_ONCE = 20


@lru_cache(maxsize=64)
def _numbers(message: str) -> tuple[int, ...]:
    document = json.loads(message)
    return tuple(event["seq"] for event in document.get("events", ()))


class Client:
    def __init__(self) -> None:
        self.position = 0
        self.seen = self.lost = self.doubled = 0
        self.slow = False

    async def run(self, port: int, events: int, ready: asyncio.Semaphore) -> None:
        from websockets.asyncio.client import connect

        async with connect(
            f"ws://127.0.0.1:{port}/ws/events",
            additional_headers={"Authorization": f"Bearer {TOKEN}"},
            compression=None,
            max_size=None,
            open_timeout=120,
            ping_interval=None,
            proxy=None,
        ) as socket:
            first = json.loads(await socket.recv())
            self.position = first["seq"]
            ready.release()
            while self.seen < events and not self.slow:
                message = str(await socket.recv())
                self.slow = message.startswith('{"type":"slow"')
                self._take(_numbers(message))

    def _take(self, numbers: tuple[int, ...]) -> None:
        if not numbers:
            return
        expected = self.position + 1
        self.lost += max(0, numbers[0] - expected)
        self.doubled += max(0, expected - numbers[0])
        if numbers[-1] - numbers[0] + 1 != len(numbers):
            self.lost += numbers[-1] - numbers[0] + 1 - len(numbers)
        self.position = numbers[-1]
        self.seen += len(numbers)


async def listen(port: int, number: int, events: int) -> None:
    clients = [Client() for _ in range(number)]
    ready = asyncio.Semaphore(0)
    tasks: list[asyncio.Task[None]] = []
    for start in range(0, number, 50):  # not all in one moment: the server is to be loaded, not its backlog
        group = clients[start : start + 50]
        tasks += [asyncio.create_task(client.run(port, events, ready)) for client in group]
        for _ in group:
            await ready.acquire()
    print(json.dumps({"ready": number}), flush=True)
    await asyncio.gather(*tasks)
    print(
        json.dumps(
            {
                "seen": sum(client.seen for client in clients),
                "lost": sum(client.lost for client in clients),
                "doubled": sum(client.doubled for client in clients),
                "slow": sum(client.slow for client in clients),
            }
        ),
        flush=True,
    )


def write(database: str, events: int, rate: int) -> None:
    from datetime import UTC, datetime

    from holdfast.model.entry import Warned
    from holdfast.model.workflow import Issue, Workflow
    from holdfast.store.protocol import Change
    from holdfast.store.sql import SqlStore

    store = SqlStore(database)
    now = datetime.now(UTC)
    flow = Workflow(
        id="wf_writer", issue=Issue(id="w", title="Writer"), worktree="/w", created_at=now, updated_at=now
    )
    store.apply(Change(flow, None, (Warned(text="begin"),)))
    begin = time.monotonic()
    for written in range(0, events - 1, _AT_ONCE):
        entries = tuple(
            Warned(text=f"event {written + index}") for index in range(min(_AT_ONCE, events - 1 - written))
        )
        after = flow.touched(now)
        store.apply(Change(after, flow.revision, entries))
        flow = after
        ahead = begin + (written + _AT_ONCE) / rate - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
    print(json.dumps({"seconds": time.monotonic() - begin}))
    store.close()


if __name__ == "__main__":
    what, target, *numbers = sys.argv[1:]
    if what == "listen":
        asyncio.run(listen(int(target), *map(int, numbers)))
    else:
        write(target, *map(int, numbers))
