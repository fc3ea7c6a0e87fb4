// What the process sends: docs/dev/page.md. Times are seconds since the epoch.

export interface Ref { apiVersion: string; kind: string; namespace: string; name: string; uid: string }
export interface Change { path: string; old?: unknown; new?: unknown }
export type Verb = "create" | "update" | "delete" | "status";

export interface Write {
  id: string; at: number; ref: Ref; verb: Verb; author: string; manager: string; resourceVersion: string;
  reconcile: string | null; summary: string; diff?: Change[];
}

export interface Cause { ref: Ref; resourceVersion: string }
export interface Reconcile {
  id: string; at: number; controller: string; key: string; seconds: number; waited: number;
  result: "success" | "error" | "requeue" | "conflict"; error: string | null; reasons: string[]; causes: Cause[]; writes: Cause[];
}

export interface ControllerStats {
  name: string; depth: number; workers: number; busy: number; rate: number; p50: number; p99: number;
  errors: number; retries: number; oldest: number; reason: string;
}

export interface Alarm {
  id: string; severity: "warning" | "error"; type: string; at: number; ref: Ref | null; controller: string | null;
  message: string; detail: string;
}

export interface GraphNode { id: string; type: "kind" | "controller" | "user"; label: string }
export interface GraphEdge { from: string; to: string; type: "watches" | "writes"; primary?: boolean }
export interface Graph { nodes: GraphNode[]; edges: GraphEdge[] }

export interface Batch {
  at: number; writes: Write[]; reconciles: Reconcile[]; controllers: ControllerStats[]; alarms: Alarm[] | null; dropped: number;
  counts?: { from: string; to: string; n: number }[]; graph?: Graph;
}

export interface About {
  mode: "plane" | "operator"; cluster: string; version: string; writes: boolean; denied: { what: string; why: string }[]; started: number;
}

export type Ready = "ready" | "progressing" | "failed" | "unknown";
export interface Tree {
  ref: Ref; ready: Ready; message: string; created: number | null; deleting: number | null; children: Tree[];
}
export interface Objects { roots: Tree[]; total: number; kinds: string[]; namespaces: string[] }

export interface Line { text: string; owner: string | null }
export interface ObjectEvent { at: number | null; type: string; reason: string; message: string; count: number; from: string }
export interface Condition { at: number | null; type: string; status: string; reason: string; message: string }
export interface ObjectDetail {
  ref: Ref; lines: Line[]; owners: string[]; events: ObjectEvent[]; conditions: Condition[]; writes: Write[];
  ready: Ready; message: string; finalizers: { name: string; holder: string | null }[]; deleting: number | null;
  gone?: number | null; children?: Write[];
}

export type Step =
  | { type: "write"; write: Write }
  | { type: "reconcile"; reconcile: Reconcile; also?: Write[] }
  | { type: "user"; who: string; write: Write }
  | { type: "reason"; who: string; why: string }
  | { type: "unknown"; why: string; write?: Write }
  | { type: "skipped"; n: number };
export interface Explained { chain: Step[]; origins?: Step[] }

export interface Usage { samples: { at: number; cpu: number; memory: number }[]; error?: string | null }
export interface Verdict { node: string; plugin: string; reason: string; score: number | null }
export interface Attempt { at: number; result: string; message: string; nodes: Verdict[]; counts: { reason: string; n: number }[] }
export interface Placement { pod: Ref; node: string | null; attempts: Attempt[] }
export interface NodeCell { name: string; ready: boolean; pods: number; capacity: number; cpu: number; memory: number; taints: number }
