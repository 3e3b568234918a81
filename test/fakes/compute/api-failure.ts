/** A refusal in the form that Compute Engine gives it. */

export class ApiFailure extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }

  /** The body of the answer. */
  get body(): object {
    const { status: code, message, reason } = this;
    return { error: { code, message, errors: [{ message, domain: 'global', reason }] } };
  }
}

export const invalid = (field: string, value: unknown, why: string) =>
  new ApiFailure(400, 'invalid', `Invalid value for field '${field}': '${value}'. ${why}`);

export const required = (field: string) =>
  new ApiFailure(400, 'required', `Required field '${field}' not specified`);

export const notFound = (path: string) =>
  new ApiFailure(404, 'notFound', `The resource '${path}' was not found`);

export const alreadyExists = (path: string) =>
  new ApiFailure(409, 'alreadyExists', `The resource '${path}' already exists`);
