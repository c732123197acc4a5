import { beforeEach, expect, test } from "vitest";
import type { SocketMessage } from "../src/api/types";
import { EventConnection, type Surroundings } from "../src/live/connection";
import { started } from "./make";

class FakeSocket {
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;
  closed = false;
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  say(message: SocketMessage): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  close(): void {
    this.closed = true;
    this.onclose?.();
  }
}

/** A world in which time passes when the test says so. */
class World implements Surroundings {
  sockets: FakeSocket[] = [];
  due = new Map<number, { action: () => void; milliseconds: number }>();
  private last = 0;
  timers = {
    set: (action: () => void, milliseconds: number) => {
      this.last += 1;
      this.due.set(this.last, { action, milliseconds });
      return this.last;
    },
    clear: (timer: number) => void this.due.delete(timer),
  };

  open = (url: string): WebSocket => {
    const socket = new FakeSocket(url);
    this.sockets.push(socket);
    return socket as unknown as WebSocket;
  };

  chance = () => 1;

  get socket(): FakeSocket {
    return this.sockets.at(-1) as FakeSocket;
  }

  get waits(): number[] {
    return [...this.due.values()].map((one) => one.milliseconds);
  }

  passTime(): void {
    const [timer, one] = [...this.due.entries()][0] as [number, { action: () => void }];
    this.due.delete(timer);
    one.action();
  }
}

let world: World;
let connection: EventConnection;

beforeEach(() => {
  world = new World();
  connection = new EventConnection(0, (since) => `/ws?since=${since}`, world);
  connection.open();
});

test("goes on where it stopped when the line breaks", () => {
  world.socket.say({ type: "events", events: [started(4, "a")] });
  world.socket.say({ type: "live", seq: 4 });
  expect(connection.current().state).toBe("live");
  world.socket.onclose?.();
  expect(connection.current().state).toBe("lost");
  world.passTime();
  expect(world.sockets.map((one) => one.url)).toEqual(["/ws?since=0", "/ws?since=4"]);
  world.socket.say({ type: "events", events: [started(4, "a"), started(5, "b")] });
  world.socket.say({ type: "live", seq: 5 });
  expect(connection.current().stream.events.map((one) => one.seq)).toEqual([4, 5]);
  expect(connection.current().state).toBe("live");
});

test("waits longer each time, up to a limit, and starts small again once it was live", () => {
  const waits: number[] = [];
  for (let round = 0; round < 8; round += 1) {
    world.socket.onclose?.();
    waits.push(world.waits[0] as number);
    world.passTime();
  }
  expect(waits).toEqual([400, 800, 1600, 3200, 6400, 8000, 8000, 8000]);
  world.socket.say({ type: "live", seq: 0 });
  world.socket.onclose?.();
  expect(world.waits).toEqual([400]);
});

test("a line on which nothing is heard for long is dead", () => {
  world.socket.say({ type: "live", seq: 0 });
  const silent = world.socket;
  world.passTime();
  expect(silent.closed).toBe(true);
  expect(connection.current().state).toBe("lost");
  expect(world.due.size).toBe(1);
});

test("somebody who comes back to the page does not wait", () => {
  world.socket.onclose?.();
  connection.hurry();
  expect(world.sockets).toHaveLength(2);
  connection.hurry();
  expect(world.sockets).toHaveLength(2);
});

test("what an old socket still says is not heard", () => {
  const old = world.socket;
  old.onclose?.();
  world.passTime();
  old.say({ type: "events", events: [started(4, "a")] });
  expect(connection.current().stream.events).toEqual([]);
});

test("closed by us, it stays closed and leaves nothing behind", () => {
  connection.close();
  expect(world.due.size).toBe(0);
  expect(world.sockets).toHaveLength(1);
});

test("tells its listeners of changes and of nothing else", () => {
  let told = 0;
  const stop = connection.subscribe(() => {
    told += 1;
  });
  world.socket.say({ type: "ping", seq: 3 });
  expect(told).toBe(0);
  world.socket.say({ type: "live", seq: 3 });
  expect(told).toBe(1);
  stop();
  world.socket.say({ type: "live", seq: 9 });
  expect(told).toBe(1);
});
