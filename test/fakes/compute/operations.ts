/** Operations of zones and of the project: accepted at once, done later, sometimes in vain. */

export interface OperationFailure {
  readonly code: string;
  readonly message: string;
  readonly httpStatus: number;
}

export interface Operation {
  readonly name: string;
  readonly id: string;
  /** Undefined: of the project. */
  readonly zone: string | undefined;
  readonly operationType: string;
  readonly targetLink: string;
  readonly insertedAtMs: number;
  readonly doneAtMs: number;
  readonly failure?: OperationFailure | undefined;
  /** Carried out when it is done and did not fail. */
  readonly effect?: () => void;
  /** Carried out when it failed. */
  readonly undo?: () => void;
  settled: boolean;
}

export class Operations {
  readonly #all: Operation[] = [];

  add(made: Omit<Operation, 'name' | 'id' | 'settled'>): Operation {
    const id = String(7_000_000_000_000_000 + this.#all.length);
    const name = `operation-${made.insertedAtMs}-${this.#all.length.toString(16).padStart(8, '0')}`;
    const operation = { ...made, id, name, settled: false };
    this.#all.push(operation);
    return operation;
  }

  /** Carries out what is due. */
  settle(nowMs: number): void {
    for (const operation of this.#all) {
      if (operation.settled || operation.doneAtMs > nowMs) continue;
      operation.settled = true;
      if (operation.failure === undefined) operation.effect?.();
      else operation.undo?.();
    }
  }

  find(zone: string | undefined, name: string): Operation | undefined {
    return this.#all.find((one) => one.zone === zone && [one.name, one.id].includes(name));
  }

  /** The newest last. */
  ofZone(zone: string): Operation[] {
    return this.#all.filter((one) => one.zone === zone);
  }

  /** The last one of a type on a target that is not done. */
  pending(operationType: string, targetLink: string): Operation | undefined {
    return this.#all.findLast(
      (one) => !one.settled && one.operationType === operationType && one.targetLink === targetLink,
    );
  }
}

/** The resource, as the API shows it at `nowMs`. */
export function operationResource(operation: Operation, base: string): Record<string, unknown> {
  const { name, id, zone, operationType, targetLink, insertedAtMs, doneAtMs } = operation;
  const failure = operation.settled ? operation.failure : undefined;
  const scope = zone === undefined ? 'global' : `zones/${zone}`;
  return {
    kind: 'compute#operation',
    id,
    name,
    operationType,
    targetLink,
    ...(zone === undefined ? {} : { zone: `${base}/zones/${zone}` }),
    selfLink: `${base}/${scope}/operations/${name}`,
    status: operation.settled ? 'DONE' : 'RUNNING',
    progress: operation.settled ? 100 : 0,
    insertTime: new Date(insertedAtMs).toISOString(),
    startTime: new Date(insertedAtMs).toISOString(),
    ...(operation.settled ? { endTime: new Date(doneAtMs).toISOString() } : {}),
    ...(failure === undefined
      ? {}
      : {
          httpErrorStatusCode: failure.httpStatus,
          httpErrorMessage: 'ERROR',
          error: { errors: [{ code: failure.code, message: failure.message }] },
        }),
  };
}
