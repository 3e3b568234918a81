/** V8's inspector of a runtime process: what the Worker's isolate holds, and where its time goes. */
import { WebSocket } from 'undici';
import { SERVICE } from '#deploy/local/edge/worker-config.ts';

const CALL_MS_MAX = 60_000;

/** One function in a CPU profile. */
export interface ProfileNode {
  readonly id: number;
  readonly callFrame: {
    readonly functionName: string;
    readonly url: string;
    /** Counts from 0. */
    readonly lineNumber: number;
  };
  readonly children?: readonly number[];
}

export interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  /** Ids of the nodes that were seen, and the time in µs since the one before. */
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

interface HeapUsage {
  readonly usedSize: number;
  /** Of array buffers. */
  readonly backingStorageSize: number;
  /** Of the runtime's own objects that scripts hold. */
  readonly embedderHeapUsedSize: number;
}

export interface Inspector extends Disposable {
  /**
   * Bytes of the JavaScript heap that are in use, contents of typed arrays included, after what is
   * unused was collected. That happens once the isolate runs again, so `wake` must send it a request.
   */
  heapBytes(wake: () => Promise<unknown>): Promise<number>;
  /** Records until `work` is done. */
  profile(intervalUs: number, work: () => Promise<unknown>): Promise<CpuProfile>;
}

/** Connects to the Worker's isolate; all objects of a Worker share it. */
export async function openInspector(port: number): Promise<Inspector> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/${SERVICE}`);
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve(), { once: true });
    socket.addEventListener('error', (event) => reject(event.error), { once: true });
  });
  let calls = 0;
  const call = (method: string, params: Record<string, unknown> = {}): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const id = ++calls;
      const signal = AbortSignal.timeout(CALL_MS_MAX);
      const settle = (done: () => void) => {
        socket.removeEventListener('message', listener);
        done();
      };
      const listener = (event: { readonly data: unknown }) => {
        const message: { id?: number; result?: unknown; error?: { message: string } } = JSON.parse(
          String(event.data),
        );
        if (message.id !== id) return;
        const { error, result } = message;
        settle(() => (error ? reject(new Error(`${method}: ${error.message}`)) : resolve(result)));
      };
      signal.addEventListener('abort', () => settle(() => reject(signal.reason)));
      socket.addEventListener('message', listener);
      socket.send(JSON.stringify({ id, method, params }));
    });
  return {
    async heapBytes(wake) {
      await call('HeapProfiler.enable');
      const collected = call('HeapProfiler.collectGarbage');
      await wake();
      await collected;
      const usage = (await call('Runtime.getHeapUsage')) as HeapUsage;
      return usage.usedSize + usage.backingStorageSize + usage.embedderHeapUsedSize;
    },
    async profile(intervalUs, work) {
      await call('Profiler.enable');
      await call('Profiler.setSamplingInterval', { interval: intervalUs });
      await call('Profiler.start');
      await work();
      const { profile } = (await call('Profiler.stop')) as { readonly profile: CpuProfile };
      return profile;
    },
    [Symbol.dispose]: () => socket.close(),
  };
}
