/** The plan as a graph. Only what is in view is drawn, so that thousands of tasks stay light. */
import {
  Background,
  BaseEdge,
  Controls,
  type Edge,
  type EdgeProps,
  Handle,
  MiniMap,
  type Node,
  type NodeChange,
  type NodeProps,
  Position,
  ReactFlow,
  type ReactFlowInstance,
} from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { memo, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import type { Task } from "../api/types";
import { neutral, words } from "../lib/format";
import { taskPath } from "../lib/paths";
import { useNarrow } from "../lib/use-narrow";
import { useTheme } from "../lib/use-theme";
import { Facts, Status } from "../parts/bits";
import { Empty, Loading } from "../parts/states";
import { type Layout, NODE_HEIGHT, NODE_WIDTH, viewOf } from "./layout";
import { LARGE, useLayout } from "./use-layout";

type TaskNode = Node<{ task: Task }, "task">;
type PlanEdge = Edge<{ path: string }>;

/** Up to here the whole is seen at a glance anyway. */
const SMALL = 8;

/** Only of a very large plan do lines begin and end at these; they go to the right. */
const HANDLES = [
  { type: "target" as const, position: Position.Left, x: 0, y: NODE_HEIGHT / 2, width: 1, height: 1 },
  {
    type: "source" as const,
    position: Position.Right,
    x: NODE_WIDTH,
    y: NODE_HEIGHT / 2,
    width: 1,
    height: 1,
  },
];
const NODE_TYPES = { task: memo(TaskBox) };
const EDGE_TYPES = { laid: memo(LaidLine) };
const OPTIONS = { hideAttribution: true };

export default function TaskGraph({ id, tasks }: { id: string; tasks: readonly Task[] }) {
  const theme = useTheme();
  const [chosen, setChosen] = useState<string | null>(null);
  const layout = useLayout(tasks, useNarrow());
  const nodes = useNodes(tasks, layout, chosen);
  const edges = useEdges(layout);
  const box = useRef<HTMLElement>(null);
  const [flow, setFlow] = useState<ReactFlowInstance<TaskNode, PlanEdge> | null>(null);
  const isMoved = useRef(false);
  const seenLast = useRef<string | null>(null);
  const focus = focused(tasks)?.id ?? seenLast.current ?? tasks[0]?.id;
  // Follows the work until somebody looks elsewhere; what is over stays where it was seen.
  useEffect(() => {
    if (!flow || !layout || !box.current || focus === undefined || isMoved.current) return;
    seenLast.current = focus;
    const { clientWidth: width, clientHeight: height } = box.current;
    const { x, y, zoom } = viewOf(layout, { width, height }, focus);
    void flow.setCenter(x, y, { zoom });
  }, [flow, layout, focus]);
  const select = useCallback((changes: readonly NodeChange<TaskNode>[]) => {
    for (const change of changes) {
      if (change.type !== "select") continue;
      setChosen((before) => (change.selected ? change.id : before === change.id ? null : before));
    }
  }, []);
  if (tasks.length === 0) return <Empty title="This workflow has no tasks." />;
  const shown = tasks.find((task) => task.id === chosen);
  return (
    <div className="graph-box">
      <section
        ref={box}
        className="graph"
        aria-label={`Graph of ${tasks.length} tasks. The Tasks tab lists them.`}
      >
        {layout === null && <Loading what="graph" />}
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          onlyRenderVisibleElements
          nodesDraggable={false}
          nodesConnectable={false}
          edgesFocusable={false}
          elementsSelectable
          minZoom={tasks.length > LARGE ? 0.3 : 0.15}
          maxZoom={1.5}
          onInit={setFlow}
          onMoveStart={(event) => {
            if (event) isMoved.current = true; // by a person, not by this page
          }}
          onNodesChange={select}
          colorMode={theme}
          proOptions={OPTIONS}
          ariaLabelConfig={{ "node.a11yDescription.default": "Press Enter to see the task." }}
        >
          <Background gap={24} />
          <Controls showInteractive={false} position="bottom-right" />
          {tasks.length > SMALL && tasks.length <= LARGE && (
            <MiniMap
              pannable
              zoomable
              position="bottom-left"
              ariaLabel="All tasks"
              nodeClassName={(node) => `mini-${(node as TaskNode).data.task.status ?? "pending"}`}
            />
          )}
        </ReactFlow>
      </section>
      {shown && <TaskPanel id={id} task={shown} onClose={() => setChosen(null)} />}
    </div>
  );
}

/** Where somebody wants to look: at what runs, else at what failed, else at what comes next. */
function focused(tasks: readonly Task[]): Task | undefined {
  const first = (status: string) => tasks.find((task) => task.status === status);
  return first("in_progress") ?? first("failed") ?? first("blocked") ?? first("pending");
}

/** A task that did not change keeps its node, so that React Flow has nothing to do for it. */
function useNodes(tasks: readonly Task[], layout: Layout | null, chosen: string | null): TaskNode[] {
  const made = useRef({ layout, nodes: new Map<string, TaskNode>() });
  return useMemo(() => {
    if (made.current.layout !== layout) made.current = { layout, nodes: new Map() };
    const known = made.current.nodes;
    if (layout === null) return [];
    return tasks.map((task) => {
      const before = known.get(task.id);
      const selected = task.id === chosen;
      if (before && before.data.task === task && before.selected === selected) return before;
      const { x, y } = layout.places.get(task.id) ?? { x: 0, y: 0 };
      const node: TaskNode = {
        id: task.id,
        type: "task",
        position: { x, y },
        data: { task },
        width: layout.nodeWidth,
        height: NODE_HEIGHT,
        measured: { width: layout.nodeWidth, height: NODE_HEIGHT },
        handles: HANDLES,
        selected,
        ariaLabel: neutral(`${task.id}: ${words(task.status ?? "pending")}. ${task.description}`),
      };
      known.set(task.id, node);
      return node;
    });
  }, [tasks, layout, chosen]);
}

function useEdges(layout: Layout | null): PlanEdge[] {
  return useMemo(
    () =>
      (layout?.edges ?? []).map(({ path, ...edge }) => ({
        ...edge,
        ...(path === undefined ? {} : { type: "laid", data: { path } }),
        focusable: false,
        selectable: false,
      })),
    [layout],
  );
}

function LaidLine({ id, data }: EdgeProps<PlanEdge>) {
  return <BaseEdge id={id} path={data?.path ?? ""} />;
}

function TaskBox({ data: { task } }: NodeProps<TaskNode>) {
  return (
    <div className={`node node-${task.status ?? "pending"}`}>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <span className="node-id">{neutral(task.id)}</span>
      <span className="node-text">{neutral(task.description)}</span>
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
}

function TaskPanel({ id, task, onClose }: { id: string; task: Task; onClose: () => void }) {
  const panel = useRef<HTMLElement>(null);
  // On a phone it opens below the graph: out of sight, if the page stays where it is.
  const isNarrow = useNarrow();
  // biome-ignore lint/correctness/useExhaustiveDependencies: each task that is chosen is to be seen
  useEffect(() => {
    if (isNarrow) panel.current?.scrollIntoView({ block: "nearest" });
  }, [task.id, isNarrow]);
  return (
    <aside ref={panel} className="task-panel" aria-label={`Task ${neutral(task.id)}`}>
      <div className="row spread">
        <h2>{neutral(task.id)}</h2>
        <button type="button" className="quiet" aria-label="Close" onClick={onClose}>
          ×
        </button>
      </div>
      <Status status={task.status ?? "pending"} />
      <p>{neutral(task.description)}</p>
      <Facts
        facts={[
          ["Result", neutral(task.result ?? "")],
          ["Attempts", (task.attempts ?? 0) > 1 ? task.attempts : null],
          ["Approval", task.approval ? "required before it starts" : null],
          ["After", neutral(task.depends_on?.join(", ") ?? "")],
          ["Driver", neutral(task.driver ?? "")],
          ["Command", task.run && <code>{neutral(task.run)}</code>],
          ["Prompt", neutral(task.prompt ?? "")],
        ]}
      />
      <Link href={taskPath(id, task.id)} className="button primary">
        {(task.attempts ?? 0) > 0 ? "Output, changes, attempts" : "Open task"}
      </Link>
    </aside>
  );
}
