/** JSON merge patch (RFC 7386): null removes, objects merge, everything else replaces. */
import { isJsonObject, type JsonObject, type JsonValue, own, setOwn } from '../json.ts';
import { PatchError } from './patch-error.ts';

/** A merged copy of the object. */
export function applyMergePatch(object: JsonObject, patch: JsonValue): JsonObject {
  if (!isJsonObject(patch)) throw new PatchError('malformed', 'a merge patch is a JSON object');
  return mergeObject(object, patch);
}

function mergeObject(target: JsonObject, patch: JsonObject): JsonObject {
  const result: JsonObject = { ...target };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) {
      delete result[key];
      continue;
    }
    const old = own(result, key);
    // Merging into nothing still drops the nulls inside the patch, as the RFC has it.
    const merged = isJsonObject(value) ? mergeObject(isJsonObject(old) ? old : {}, value) : value;
    setOwn(result, key, merged);
  }
  return result;
}
