/** The `kvm` block of the providers file: the hosts, and what machines can be made from. */
import { isIP } from 'node:net';
import { z } from 'zod';

const HOSTS_MAX = 100;
const ITEMS_MAX = 200;
const PORT_MAX = 65_535;
const CPUS_MAX = 512;
const MEMORY_MIB_MIN = 64;
const MEMORY_MIB_MAX = 16 * 1024 * 1024;
const DISK_GIB_MAX = 64 * 1024;

/** Names become parts of ids, file names and volume names: nothing in them separates or escapes. */
const nameSchema = z.string().regex(/^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/, {
  message: 'must be lower-case letters, digits, "-" and ".", at most 63 characters',
});
/** Names that libvirt gave; they are looked up, never made. */
const libvirtNameSchema = z.string().regex(/^[\w.+:@-]{1,255}$/, {
  message: 'must be letters, digits and any of "_.+:@-", at most 255 characters',
});
const kubernetesNameSchema = z.string().regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, {
  message: 'must be a name as Kubernetes takes it',
});

const HOST_NAME =
  /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$/i;

const hostSchema = z.strictObject({
  /** What `placement.zone` of a Proxy refers to. */
  name: nameSchema,
  /** Host name or address of its sshd. */
  address: z.string().refine((text) => isIP(text) !== 0 || HOST_NAME.test(text), {
    message: 'must be a host name or an IP address',
  }),
  port: z.number().int().min(1).max(PORT_MAX).default(22),
  user: z.string().regex(/^[a-z_][-a-z0-9_.]{0,31}\$?$/i, { message: 'must be a user name' }),
  /** Storage pool for images, disks and seeds. */
  pool: libvirtNameSchema.default('default'),
  network: libvirtNameSchema.default('default'),
  /** `qemu` is emulation: for hosts without `/dev/kvm`, and slow. */
  virtType: z.enum(['kvm', 'qemu']).default('kvm'),
  /** Path of libvirt's socket on the host. */
  socket: z
    .string()
    .regex(/^\/[\w./@+-]{1,100}$/, { message: 'must be an absolute path' })
    .default('/run/libvirt/libvirt-sock'),
});

const imageSchema = z.strictObject({
  /** What `placement.image` of a Proxy refers to. */
  name: nameSchema,
  /** Address of a qcow2 image; the agent fetches it. */
  url: z
    .url({ protocol: /^https$/, message: 'must be an https:// address' })
    .max(2048)
    .refine((text) => !/^https:\/\/[^/?#]*@/i.test(text), {
      message: 'must not hold a user name or a password',
    }),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/i, { message: 'must be 64 hexadecimal digits' })
    .transform((text) => text.toLowerCase()),
  firmware: z.enum(['efi', 'bios']).default('efi'),
});

const machineTypeSchema = z.strictObject({
  /** What `placement.machineType` of a Proxy refers to. */
  name: nameSchema,
  cpus: z.number().int().min(1).max(CPUS_MAX),
  memoryMiB: z.number().int().min(MEMORY_MIB_MIN).max(MEMORY_MIB_MAX),
  diskGiB: z.number().int().min(1).max(DISK_GIB_MAX),
});

export const kvmBlockSchema = z.strictObject({
  /** Secret with the keys `id_ed25519` (private key) and `known_hosts`. */
  sshSecret: z.strictObject({ name: kubernetesNameSchema, namespace: kubernetesNameSchema }),
  hosts: named(hostSchema, HOSTS_MAX),
  images: named(imageSchema, ITEMS_MAX),
  machineTypes: named(machineTypeSchema, ITEMS_MAX),
});

/** A list whose items have names of their own, at least one of them. */
function named<Item extends z.ZodType<{ name: string }>>(item: Item, max: number) {
  return z
    .array(item)
    .min(1)
    .max(max)
    .superRefine((items, context) => {
      const first = new Map<string, number>();
      for (const [index, { name }] of items.entries()) {
        const earlier = first.get(name);
        if (earlier === undefined) first.set(name, index);
        else {
          const message = `"${name}" is the name of item ${earlier} already`;
          context.addIssue({ code: 'custom', path: [index, 'name'], message });
        }
      }
    });
}

export type KvmBlock = z.infer<typeof kvmBlockSchema>;
export type KvmHost = z.infer<typeof hostSchema>;
export type KvmImage = z.infer<typeof imageSchema>;
export type KvmMachineType = z.infer<typeof machineTypeSchema>;
