/** The kinds of patches and the media types by which clients name them. */

export type PatchType = 'json' | 'merge' | 'strategic' | 'apply';

export const PATCH_MEDIA_TYPES: Readonly<Record<PatchType, string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
};

/** What custom resources take: a strategic merge needs the strategies of a built-in kind. */
export const CUSTOM_PATCH_MEDIA_TYPES: readonly string[] = [
  PATCH_MEDIA_TYPES.json,
  PATCH_MEDIA_TYPES.merge,
  PATCH_MEDIA_TYPES.apply,
];
