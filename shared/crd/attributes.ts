/** Attributes and selectors: Kubernetes label keys and values, on both halves of the system. */
import { z } from 'zod';

const NAME = '[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?';
const DNS_LABEL = '[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?';

/** `[prefix/]name`, as Kubernetes takes it for a label key. */
export const LABEL_KEY_PATTERN = `^(${DNS_LABEL}(\\.${DNS_LABEL})*/)?${NAME}$`;
export const LABEL_VALUE_PATTERN = `^(${NAME})?$`;
export const ATTRIBUTES_MAX = 32;

/** Prefix (253), slash, name (63). */
const LABEL_KEY_LENGTH_MAX = 317;

export const labelKeySchema = z
  .string()
  .max(LABEL_KEY_LENGTH_MAX)
  .regex(new RegExp(LABEL_KEY_PATTERN));
export const labelValueSchema = z.string().max(63).regex(new RegExp(LABEL_VALUE_PATTERN));

/** The CRD's map. Structural schemas cannot restrict keys, so a CEL rule does. */
export const attributesSchema = z.record(z.string(), labelValueSchema).meta({
  description: 'What selectors of crawlers match on; keys and values as Kubernetes labels.',
  maxProperties: ATTRIBUTES_MAX,
  'x-kubernetes-validations': [
    {
      rule: `self.all(key, key.size() <= ${LABEL_KEY_LENGTH_MAX} && key.matches(r'${LABEL_KEY_PATTERN}'))`,
      message: 'keys must be Kubernetes label keys: an optional DNS prefix, "/", and a name',
    },
  ],
});

/** The same map where it arrives over HTTP. */
export const selectorSchema = z
  .record(labelKeySchema, labelValueSchema)
  .refine((selector) => Object.keys(selector).length <= ATTRIBUTES_MAX, {
    message: `at most ${ATTRIBUTES_MAX} entries`,
  });
