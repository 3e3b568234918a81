/**
 * OpenAPI v2 as the `openapi.v2.Document` message of google/gnostic (`OpenAPIv2.proto`), the only
 * form that older kubectl asks for. Field numbers are those of that file; a JSON value without a
 * type of its own travels as YAML, of which JSON is a part.
 */
import { isJsonObject, type JsonObject, type JsonValue, objects } from '../json.ts';
import { MessageWriter } from './protobuf.ts';

/** Writes one JSON keyword as one field. */
type FieldWriter = (writer: MessageWriter, field: number, value: JsonValue) => void;

/** Keywords of a message: field number and form. */
type Message = Readonly<Record<string, readonly [number, FieldWriter]>>;

const string: FieldWriter = (writer, field, value) => {
  if (typeof value === 'string') writer.string(field, value);
};
const bool: FieldWriter = (writer, field, value) => writer.bool(field, value === true);
const int64: FieldWriter = (writer, field, value) => {
  if (typeof value === 'number') writer.int64(field, value);
};
const double: FieldWriter = (writer, field, value) => {
  if (typeof value === 'number') writer.double(field, value);
};
const strings: FieldWriter = (writer, field, value) => {
  for (const item of Array.isArray(value) ? value : []) {
    if (typeof item === 'string') writer.repeatedString(field, item);
  }
};
const any: FieldWriter = (writer, field, value) => writer.bytes(field, encodeAny(value));
const anys: FieldWriter = (writer, field, value) => {
  for (const item of Array.isArray(value) ? value : []) any(writer, field, item);
};

/** A nested message; `describe` is a function because messages refer to each other. */
function message(describe: () => Message, extensionField: number): FieldWriter {
  return (writer, field, value) => {
    if (isJsonObject(value)) writer.bytes(field, encode(value, describe(), extensionField));
  };
}

/** A map, as a repeated (name, value) message in field `entryField` of a wrapper. */
function named(entryField: number, item: FieldWriter): FieldWriter {
  return (writer, field, value) => {
    if (!isJsonObject(value)) return;
    const wrapper = new MessageWriter();
    for (const [name, entry] of Object.entries(value)) {
      wrapper.bytes(entryField, encodeNamed(name, entry, item));
    }
    writer.bytes(field, wrapper.finish());
  };
}

/** One alternative of a `oneof` wrapper, or several levels of it. */
function wrapped(path: readonly number[], item: FieldWriter): FieldWriter {
  const [first, ...rest] = path;
  if (first === undefined) return item;
  const inner = wrapped(rest, item);
  return (writer, field, value) => {
    const wrapper = new MessageWriter();
    inner(wrapper, first, value);
    writer.bytes(field, wrapper.finish());
  };
}

const SCHEMA_EXTENSIONS = 31;
const OPERATION_EXTENSIONS = 13;
const PATH_EXTENSIONS = 10;
const BODY_EXTENSIONS = 6;
const PATH_PARAMETER_EXTENSIONS = 22;
const QUERY_PARAMETER_EXTENSIONS = 23;
const RESPONSE_EXTENSIONS = 5;
const INFO_EXTENSIONS = 7;
const DOCUMENT_EXTENSIONS = 16;

const schema: FieldWriter = message(() => SCHEMA, SCHEMA_EXTENSIONS);

const additionalProperties: FieldWriter = (writer, field, value) => {
  const wrapper = new MessageWriter();
  if (isJsonObject(value)) schema(wrapper, 1, value);
  else bool(wrapper, 2, value);
  writer.bytes(field, wrapper.finish());
};
const typeItem: FieldWriter = (writer, field, value) => {
  const wrapper = new MessageWriter();
  strings(wrapper, 1, Array.isArray(value) ? value : [value]);
  writer.bytes(field, wrapper.finish());
};
const itemsItem = wrapped([1], schema);

const SCHEMA: Message = {
  $ref: [1, string],
  format: [2, string],
  title: [3, string],
  description: [4, string],
  default: [5, any],
  multipleOf: [6, double],
  maximum: [7, double],
  exclusiveMaximum: [8, bool],
  minimum: [9, double],
  exclusiveMinimum: [10, bool],
  maxLength: [11, int64],
  minLength: [12, int64],
  pattern: [13, string],
  maxItems: [14, int64],
  minItems: [15, int64],
  uniqueItems: [16, bool],
  maxProperties: [17, int64],
  minProperties: [18, int64],
  required: [19, strings],
  enum: [20, anys],
  additionalProperties: [21, additionalProperties],
  type: [22, typeItem],
  items: [23, itemsItem],
  properties: [25, named(1, schema)],
};

const BODY_PARAMETER: Message = {
  description: [1, string],
  name: [2, string],
  in: [3, string],
  required: [4, bool],
  schema: [5, schema],
};
const PATH_PARAMETER: Message = {
  required: [1, bool],
  in: [2, string],
  description: [3, string],
  name: [4, string],
  type: [5, string],
  uniqueItems: [19, bool],
};
const QUERY_PARAMETER: Message = {
  required: [1, bool],
  in: [2, string],
  description: [3, string],
  name: [4, string],
  type: [6, string],
  uniqueItems: [20, bool],
};

/** ParametersItem.parameter → Parameter.(body | non_body) → the kind of parameter. */
const parameters: FieldWriter = (writer, field, value) => {
  for (const parameter of objects(value)) {
    parameterWriter(parameter.in)(writer, field, parameter);
  }
};

function parameterWriter(place: JsonValue | undefined): FieldWriter {
  if (place === 'body')
    return wrapped(
      [1, 1],
      message(() => BODY_PARAMETER, BODY_EXTENSIONS),
    );
  if (place === 'path') {
    return wrapped(
      [1, 2, 4],
      message(() => PATH_PARAMETER, PATH_PARAMETER_EXTENSIONS),
    );
  }
  return wrapped(
    [1, 2, 3],
    message(() => QUERY_PARAMETER, QUERY_PARAMETER_EXTENSIONS),
  );
}

const RESPONSE: Message = { description: [1, string], schema: [2, wrapped([1], schema)] };
const response = wrapped(
  [1],
  message(() => RESPONSE, RESPONSE_EXTENSIONS),
);

const OPERATION: Message = {
  summary: [2, string],
  description: [3, string],
  operationId: [5, string],
  produces: [6, strings],
  consumes: [7, strings],
  parameters: [8, parameters],
  responses: [9, named(1, response)],
};
const operation = message(() => OPERATION, OPERATION_EXTENSIONS);

const PATH_ITEM: Message = {
  get: [2, operation],
  put: [3, operation],
  post: [4, operation],
  delete: [5, operation],
  patch: [8, operation],
  parameters: [9, parameters],
};
const INFO: Message = { title: [1, string], version: [2, string], description: [3, string] };

const DOCUMENT: Message = {
  swagger: [1, string],
  info: [2, message(() => INFO, INFO_EXTENSIONS)],
  paths: [
    8,
    named(
      2,
      message(() => PATH_ITEM, PATH_EXTENSIONS),
    ),
  ],
  definitions: [9, named(1, schema)],
};

/** The bytes of an `openapi.v2.Document`. */
export function encodeOpenApiV2(document: JsonObject): Uint8Array {
  return encode(document, DOCUMENT, DOCUMENT_EXTENSIONS);
}

function encode(value: JsonObject, fields: Message, extensionField: number): Uint8Array {
  const writer = new MessageWriter();
  for (const [key, item] of Object.entries(value)) {
    const known = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (known !== undefined) known[1](writer, known[0], item);
    else if (key.startsWith('x-')) writer.bytes(extensionField, encodeNamed(key, item, any));
  }
  return writer.finish();
}

function encodeNamed(name: string, value: JsonValue, item: FieldWriter): Uint8Array {
  const writer = new MessageWriter();
  writer.string(1, name);
  item(writer, 2, value);
  return writer.finish();
}

/** `Any` with its YAML text. */
function encodeAny(value: JsonValue): Uint8Array {
  const writer = new MessageWriter();
  writer.string(2, `${JSON.stringify(value)}\n`);
  return writer.finish();
}
