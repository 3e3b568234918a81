/** Custom resources: generations count, stale updates are refused, status is apart. */
import type { JsonObject } from '../../json.ts';
import type { Strategy } from '../api-resource.ts';
import { plainStrategy } from './plain.ts';

/**
 * @param statusSubresource whether the version declares `/status`: a new object then has none
 * @param toStorage sets the storage version's apiVersion, `fromStorage` that of this version
 */
export function customResourceStrategy(
  statusSubresource: boolean,
  toStorage: (object: JsonObject) => JsonObject,
  fromStorage: (object: JsonObject) => JsonObject,
): Strategy {
  return {
    ...plainStrategy,
    unconditionalUpdate: false,
    tracksGeneration: true,
    toStorage,
    fromStorage,
    ...(statusSubresource && {
      prepareForCreate: (object: JsonObject) => {
        const { status: _ignored, ...rest } = object;
        return rest;
      },
    }),
  };
}
