/** The mark of a machine as labels, which most backends have. Pure. */
import { INSTALLATION_LABEL, MANAGED_LABEL, UID_LABEL } from '#shared/crd/names.ts';
import type { Mark } from './provider.ts';

export type Labels = Readonly<Record<string, string>>;
/** As some APIs have them: absent for none. */
type MaybeLabels = Labels | null | undefined;

/** All labels of the mark. */
export const MARK_LABELS: readonly string[] = [MANAGED_LABEL, UID_LABEL, INSTALLATION_LABEL];

export function markLabels({ uid, installation }: Mark): Record<string, string> {
  return { [MANAGED_LABEL]: 'true', [UID_LABEL]: uid, [INSTALLATION_LABEL]: installation };
}

/** What has these labels carries our mark; whose it is tells `markOf`. */
export function isMarked(labels: MaybeLabels): boolean {
  return labels?.[MANAGED_LABEL] === 'true';
}

/** For whom it was made; empty parts where the labels do not say. */
export function markOf(labels: MaybeLabels): Mark {
  return { uid: labels?.[UID_LABEL] ?? '', installation: labels?.[INSTALLATION_LABEL] ?? '' };
}

/** The labels carry the whole of the mark, as `create` for `mark` writes it. */
export function isMadeFor(mark: Mark, labels: MaybeLabels): boolean {
  return isMarked(labels) && isSameMark(markOf(labels), mark);
}

export function isSameMark(a: Mark | undefined, b: Mark): boolean {
  return a !== undefined && a.uid === b.uid && a.installation === b.installation;
}
