// A shell in a container: xterm on Kubernetes' channel protocol. Loaded when a shell is opened.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import type { Ref } from "../protocol";
import "./adopted_style";

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const ERROR = 3;
const RESIZE = 4;

/** Open a shell in the element; returns how to close it. */
export function openShell(element: HTMLElement, pod: Ref, report: (state: string) => void): () => void {
  const style = getComputedStyle(element);
  const terminal = new Terminal({
    fontFamily: style.fontFamily, fontSize: 13, cursorBlink: false, screenReaderMode: true,
    theme: { background: style.backgroundColor, foreground: style.color, cursor: style.color },
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(element);
  const encoder = new TextEncoder();
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const query = new URLSearchParams({ namespace: pod.namespace, name: pod.name });
  const socket = new WebSocket(`${scheme}://${location.host}/api/pods/exec?${query}`, ["v5.channel.k8s.io"]);
  socket.binaryType = "arraybuffer";
  const send = (channel: number, text: string): void => {
    if (socket.readyState !== WebSocket.OPEN) return;
    const payload = encoder.encode(text);
    const frame = new Uint8Array(payload.length + 1);
    frame[0] = channel;
    frame.set(payload, 1);
    socket.send(frame);
  };
  const resize = (): void => {
    fit.fit();
    send(RESIZE, JSON.stringify({ Width: terminal.cols, Height: terminal.rows }));
  };
  const observer = new ResizeObserver(resize);
  socket.onopen = () => {
    report("connected");
    observer.observe(element);
    terminal.focus();
  };
  socket.onmessage = (event: MessageEvent<ArrayBuffer>) => {
    const frame = new Uint8Array(event.data);
    const channel = frame[0];
    if (channel === STDOUT || channel === STDERR) terminal.write(frame.subarray(1));
    else if (channel === ERROR) report(ending(new TextDecoder().decode(frame.subarray(1))));
  };
  let failed = true;
  socket.addEventListener("open", () => (failed = false));
  socket.onclose = () => {
    if (failed) report("The shell could not be opened.");
    terminal.options.disableStdin = true;
  };
  terminal.onData((text) => send(STDIN, text));
  return () => {
    observer.disconnect();
    socket.close();
    terminal.dispose();
  };
}

function ending(text: string): string {
  try {
    const status = JSON.parse(text) as { status?: string; message?: string };
    return status.status === "Success" ? "The shell has ended." : (status.message ?? "The shell has failed.");
  } catch {
    return text;
  }
}
