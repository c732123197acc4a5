/** One WebSocket that comes back by itself, and the stream it feeds. */
import { socketProtocols } from "../api/token";
import type { SocketMessage } from "../api/types";
import { hear, type Stream, startAt } from "./stream";

export type ConnectionState = "connecting" | "live" | "lost";

export interface Following {
  readonly stream: Stream;
  readonly state: ConnectionState;
}

const FIRST_WAIT = 400;
const LONGEST_WAIT = 8_000;
/** The server pings every 15 s; silence for this long is a dead line. */
const SILENCE = 40_000;

interface Timers {
  set(action: () => void, milliseconds: number): number;
  clear(timer: number): void;
}

export interface Surroundings {
  open(url: string): WebSocket;
  timers: Timers;
  /** Between 0 and 1: many pages do not come back in one instant. */
  chance(): number;
}

const BROWSER: Surroundings = {
  open: (url) => new WebSocket(url, socketProtocols()),
  timers: {
    set: (action, milliseconds) => window.setTimeout(action, milliseconds),
    clear: (timer) => window.clearTimeout(timer),
  },
  chance: Math.random,
};

export class EventConnection {
  private following: Following;
  private socket: WebSocket | null = null;
  private listeners = new Set<() => void>();
  private retry: number | null = null;
  private watchdog: number | null = null;
  private failures = 0;
  private closed = false;
  private readonly url: (since: number) => string;
  private readonly around: Surroundings;

  constructor(since: number, url: (since: number) => string, around: Surroundings = BROWSER) {
    this.following = { stream: startAt(since), state: "connecting" };
    this.url = url;
    this.around = around;
  }

  current = (): Following => this.following;

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  open(): void {
    this.closed = false;
    this.stopTimers();
    const socket = this.around.open(this.url(this.following.stream.position));
    this.socket = socket;
    socket.onmessage = (message) => {
      if (socket === this.socket) this.onMessage(JSON.parse(String(message.data)) as SocketMessage);
    };
    socket.onclose = () => {
      if (socket === this.socket) this.onLost();
    };
    this.watch();
  }

  /** Now rather than when the wait is over: the network is back, or somebody looks at the page again. */
  hurry = (): void => {
    if (this.retry !== null) {
      this.failures = 0;
      this.open();
    }
  };

  close(): void {
    this.closed = true;
    this.stopTimers();
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  private onMessage(message: SocketMessage): void {
    this.watch();
    if (message.type === "live") this.failures = 0;
    const stream = hear(this.following.stream, message);
    const state = message.type === "live" ? "live" : this.following.state;
    this.tell({ stream, state });
  }

  private onLost(): void {
    this.socket = null;
    this.stopTimers();
    if (this.closed) return;
    this.tell({ ...this.following, state: "lost" });
    const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.failures) * (0.5 + this.around.chance() / 2);
    this.failures += 1;
    this.retry = this.around.timers.set(() => this.open(), wait);
  }

  private watch(): void {
    if (this.watchdog !== null) this.around.timers.clear(this.watchdog);
    this.watchdog = this.around.timers.set(() => {
      const silent = this.socket;
      this.onLost();
      silent?.close();
    }, SILENCE);
  }

  private stopTimers(): void {
    for (const timer of [this.retry, this.watchdog]) if (timer !== null) this.around.timers.clear(timer);
    this.retry = this.watchdog = null;
  }

  private tell(following: Following): void {
    if (following.stream === this.following.stream && following.state === this.following.state) return;
    this.following = following;
    for (const listener of this.listeners) listener();
  }
}

export function socketUrl(workflowId: string | null): (since: number) => string {
  return (since) => {
    const url = new URL("/ws/events", window.location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    url.searchParams.set("since", String(since));
    if (workflowId !== null) url.searchParams.set("workflow_id", workflowId);
    return url.href;
  };
}
