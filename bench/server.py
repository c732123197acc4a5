"""The server beside a FastAPI endpoint that returns the same bytes from memory; and a crowd that listens."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

from http_load import Load, load
from measure import Figure, scratch_folder
from server_processes import TOKEN

TOPIC = "server"
_HERE = Path(__file__).parent
_FEW, _MANY = 100, 100_000
_QUESTIONS = {"workflow": f"/api/workflows/wf_{50:026d}", "page": "/api/workflows?limit=50"}
_CONNECTIONS = 4


def run(quick: bool) -> list[Figure]:
    with scratch_folder() as folder:
        return [*_requests(folder, quick), *_crowd(folder, quick)]


def _requests(folder: Path, quick: bool) -> list[Figure]:
    few, many = _stored(folder, _FEW), _stored(folder, _MANY)
    with (
        _server("serve", many) as server,
        _server("anew", few) as small,
        _server("anew", many) as large,
    ):
        kept = folder / "answers.json"
        answers = {name: _get(large["port"], path) for name, path in _QUESTIONS.items()}
        kept.write_text(json.dumps(answers), encoding="utf-8")
        with _server("memory", kept) as peer:
            told = {"peer": peer, "server": server, "small": small, "large": large}
            ports = {name: one["port"] for name, one in told.items()}
            for port in ports.values():
                _get(port, _QUESTIONS["page"])
            return [figure for name in _QUESTIONS for figure in _compared(name, ports, quick)]


def _compared(question: str, ports: dict[str, int], quick: bool) -> list[Figure]:
    """In turns, so that a busy moment hits all alike; the median round counts."""
    rounds: dict[str, list[Load]] = {name: [] for name in ports}
    for number in range(3 if quick else 9):
        for name, port in ports.items():
            found = load(
                port, _QUESTIONS[question], TOKEN, connections=_CONNECTIONS, requests=50 if quick else 300
            )
            if number:  # the first one warms up
                rounds[name].append(found)
    a_request = {name: _median([1000 / one.rate for one in found]) for name, found in rounds.items()}
    p99 = {name: _median([one.p99 for one in found]) for name, found in rounds.items()}
    memory = f"{question} from memory"
    return [
        Figure(TOPIC, memory, a_request["peer"], p99=p99["peer"]),
        Figure(
            TOPIC,
            f"{question}, a request",
            a_request["server"],
            p99=p99["server"],
            against=memory,
            ratio=a_request["server"] / a_request["peer"],
            bar=2.0,  # half as many a second, at the least
        ),
        Figure(
            TOPIC,
            f"{question}, a request, read anew",
            a_request["large"],
            p99=p99["large"],
            against=memory,
            ratio=a_request["large"] / a_request["peer"],
        ),
        Figure(
            TOPIC,
            f"{question}, read anew, p99 with {_MANY:,} stored",
            p99["large"],
            against=f"{_FEW} stored",
            ratio=p99["large"] / p99["small"],
            bar=3.0,
        ),
    ]


def _crowd(folder: Path, quick: bool) -> list[Figure]:
    clients, rate, seconds = (50, 500, 4) if quick else (500, 2_000, 60)
    events = rate * seconds
    database = _stored(folder, 0)
    with _server("serve", database) as server:
        _get(server["port"], _QUESTIONS["page"])
        listeners = subprocess.Popen(
            [sys.executable, _HERE / "crowd.py", "listen", str(server["port"]), str(clients), str(events)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert listeners.stdout is not None
        listeners.stdout.readline()
        before = _memory(server["pid"])
        writer = subprocess.Popen(
            [sys.executable, _HERE / "crowd.py", "write", str(database), str(events), str(rate)],
            stdout=subprocess.PIPE,
            text=True,
        )
        samples = [before]
        while writer.poll() is None:
            time.sleep(1)
            samples.append(_memory(server["pid"]))
        wrote = json.loads(writer.communicate()[0])
        told = json.loads(listeners.communicate(timeout=300)[0])
    middle = samples[len(samples) // 2]
    crowd = f"{clients} clients, {rate:,} events/s for {seconds} s"
    return [
        Figure(TOPIC, f"{crowd}: events sent", told["seen"] / 1e6, unit="M"),
        Figure(TOPIC, f"{crowd}: lost", told["lost"], unit="", bar=0),
        Figure(TOPIC, f"{crowd}: doubled", told["doubled"], unit="", bar=0),
        Figure(TOPIC, f"{crowd}: clients too slow", told["slow"], unit="", bar=0),
        Figure(TOPIC, f"{crowd}: writer's time", wrote["seconds"], unit="s"),
        Figure(TOPIC, f"{crowd}: memory", samples[-1], unit="MB"),
        Figure(
            TOPIC,
            f"{crowd}: memory, end by middle",
            samples[-1],
            unit="MB",
            against="half-way",
            ratio=samples[-1] / middle,
            bar=1.2,
        ),
    ]


def _stored(folder: Path, number: int) -> Path:
    place = folder / f"stored-{number}"
    place.mkdir()
    database = place / "holdfast.db"
    subprocess.run(
        [sys.executable, _HERE / "server_processes.py", "store", str(number), database],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return database


@contextlib.contextmanager
def _server(kind: str, target: Path) -> Generator[dict[str, Any]]:
    with subprocess.Popen(
        [sys.executable, _HERE / "server_processes.py", kind, target],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.stdin.close()


def _get(port: int, path: str) -> str:
    """The answer; the listener is there before the server is, so this waits for it."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - our own server
        return answer.read().decode()


def _memory(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
