import { Component, type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import { Link, Route, Switch, useLocation } from "wouter";
import { MissingPart, part } from "./lib/part";
import { taskIn } from "./lib/paths";
import { useConnectionState } from "./live/status";
import { WorkflowList } from "./pages/WorkflowList";
import { Empty, Failed, Loading } from "./parts/states";
import { ThemeSwitch } from "./parts/ThemeSwitch";
import { Toasts } from "./parts/toasts";

const CommandPalette = part(() => import("./parts/CommandPalette"));
const NewWorkflow = part(() => import("./pages/NewWorkflow"));
const WorkflowDetail = part(() => import("./pages/WorkflowDetail"));
const TaskPage = part(() => import("./pages/TaskPage"));
const ResumePage = part(() => import("./pages/ResumePage"));
const SnapshotPage = part(() => import("./pages/SnapshotPage"));
const DiffPage = part(() => import("./pages/DiffPage"));
const AgentSessions = part(() => import("./pages/AgentSessions"));
const ServerPage = part(() => import("./pages/ServerPage"));

export function App() {
  const [path] = useLocation();
  const main = useRef<HTMLElement>(null);
  const page = pageOf(path);
  const shown = useRef(page);
  useEffect(() => {
    if (shown.current === page) return;
    shown.current = page;
    main.current?.focus(); // a new page: keyboard and screen reader start at its top
    window.scrollTo(0, 0);
  }, [page]);
  return (
    <>
      <a className="skip" href="#main">
        Skip to content
      </a>
      <Header path={path} />
      <main id="main" ref={main} tabIndex={-1}>
        <Safe key={page}>
          <Suspense fallback={<Loading what="page" />}>
            <Switch>
              <Route path="/" component={WorkflowList} />
              <Route path="/new" component={NewWorkflow} />
              <Route path="/workflows/:id/resume">{({ id }) => <ResumePage id={id} />}</Route>
              <Route path="/workflows/:id/snapshots/:snapshot">
                {({ id, snapshot }) => <SnapshotPage id={id} snapshotId={snapshot} />}
              </Route>
              <Route path="/workflows/:id/diff/:before/:after">
                {({ id, before, after }) => <DiffPage id={id} before={before} after={after} />}
              </Route>
              <Route path="/workflows/:id/tasks/:task">
                {({ id, task }) => <TaskPage key={task} id={id} taskId={taskIn(location.pathname)} />}
              </Route>
              <Route path="/workflows/:id/:tab?">
                {({ id, tab }) => <WorkflowDetail id={id} tab={tab} />}
              </Route>
              <Route path="/sessions" component={AgentSessions} />
              <Route path="/server" component={ServerPage} />
              <Route>
                <Empty title="Page not found.">
                  <Link href="/">Go to workflows</Link>
                </Empty>
              </Route>
            </Switch>
          </Suspense>
        </Safe>
      </main>
      <Toasts />
    </>
  );
}

/** Tabs of one workflow are one page. */
function pageOf(path: string): string {
  const parts = path.split("/");
  const isTab = parts[1] === "workflows" && parts.length === 4 && parts[3] !== "resume";
  return isTab ? parts.slice(0, 3).join("/") : path;
}

const PLACES = [
  ["/", "Workflows"],
  ["/sessions", "Agent sessions"],
  ["/server", "Server"],
] as const;

function Header({ path }: { path: string }) {
  return (
    <header className="bar">
      <Link href="/" className="brand" aria-label="Holdfast, to the workflows">
        <img src="/favicon.svg" alt="" width="22" height="22" />
        <span>Holdfast</span>
      </Link>
      <nav aria-label="Main">
        {PLACES.map(([href, name]) => {
          const isHere = href === "/" ? path === "/" || path.startsWith("/workflows") : path.startsWith(href);
          return (
            <Link key={href} href={href} aria-current={isHere ? "page" : undefined}>
              {name}
            </Link>
          );
        })}
      </nav>
      <Palette />
      <Liveness />
      <ThemeSwitch />
      <Link href="/new" className="button primary">
        New <span className="wide-only">workflow</span>
      </Link>
    </header>
  );
}

/** Ctrl-K, from wherever one is. */
function Palette() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const keyed = (event: globalThis.KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen((before) => !before);
    };
    window.addEventListener("keydown", keyed);
    return () => window.removeEventListener("keydown", keyed);
  }, []);
  return (
    <>
      <button
        type="button"
        className="small go-to"
        aria-keyshortcuts="Control+K Meta+K"
        onClick={() => setOpen(true)}
      >
        Go to… <kbd className="wide-only">Ctrl K</kbd>
      </button>
      {isOpen && (
        <Suspense fallback={null}>
          <CommandPalette onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}

const LIVENESS = { live: "Live", connecting: "Connecting…", lost: "Reconnecting…" };

function Liveness() {
  const state = useConnectionState();
  return (
    <span className={`liveness liveness-${state ?? "none"}`} role="status">
      {state && (
        <>
          <span className="dot" aria-hidden="true" />
          <span className="liveness-text">{LIVENESS[state]}</span>
        </>
      )}
    </span>
  );
}

/** A fault in one page leaves the rest of the dashboard standing. */
class Safe extends Component<{ children: ReactNode }, { error: unknown }> {
  override state = { error: null as unknown };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  /** What could not be loaded once is not asked for again: only a new page does, and it knows the names of today. */
  private readonly again = () => {
    if (this.state.error instanceof MissingPart) location.reload();
    else this.setState({ error: null });
  };

  override render() {
    if (this.state.error === null) return this.props.children;
    return <Failed error={this.state.error} retry={this.again} />;
  }
}
