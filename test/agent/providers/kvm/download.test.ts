import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KvmImage } from '#agent/providers/config-kvm.ts';
import { download, ImageError } from '#agent/providers/kvm/download.ts';
import { type ImageServer, startImageServer } from '#test/guests/image-server.ts';
import { qcow2Head } from './block.ts';

const IMAGE = Buffer.concat([qcow2Head(1024 ** 3), Buffer.alloc(300_000, 7)]);
const sha256 = createHash('sha256').update(IMAGE).digest('hex');
const QUERY = '?X-Signature=sentinel-of-a-signature';

let server: ImageServer;
let serve: (incoming: IncomingMessage, outgoing: ServerResponse) => void;

beforeAll(async () => {
  server = await startImageServer((...at) => serve(...at));
});
afterAll(() => server.close());

const imageOf = (over: Partial<KvmImage> = {}): KvmImage => ({
  name: 'debian-13',
  url: `${server.url}${QUERY}`,
  sha256,
  firmware: 'efi',
  ...over,
});

async function fetched(image = imageOf(), signal = AbortSignal.timeout(10_000)): Promise<Buffer> {
  const { bytes, content } = await download(image, server.dispatcher, signal);
  const pieces: Uint8Array[] = [];
  for await (const piece of content) pieces.push(piece);
  const all = Buffer.concat(pieces);
  expect(all).toHaveLength(bytes);
  return all;
}

async function failure(call: Promise<unknown>): Promise<ImageError> {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ImageError)) throw new Error(`no ImageError: ${String(error)}`);
  expect(error.message).not.toContain('sentinel');
  return error;
}

const answer = (status: number, body: Buffer, headers: object = {}) => {
  serve = (_incoming, outgoing) => {
    outgoing.writeHead(status, { 'content-length': body.length, ...headers });
    outgoing.end(body);
  };
};

describe('an image', () => {
  test('is fetched as it is', async () => {
    let accepted: string | undefined;
    serve = (incoming, outgoing) => {
      accepted = String(incoming.headers['accept-encoding']);
      outgoing.writeHead(200, { 'content-length': IMAGE.length });
      outgoing.end(IMAGE);
    };
    expect(await fetched()).toEqual(IMAGE);
    // The checksum is that of the file.
    expect(accepted).toBe('identity');
  });

  test('is fetched where its address leads', async () => {
    serve = (incoming, outgoing) => {
      if (incoming.url === '/here') outgoing.end(IMAGE);
      else outgoing.writeHead(302, { location: '/here' }).end();
    };
    serve = ((before) => (incoming, outgoing) => {
      if (incoming.url === '/here') outgoing.setHeader('content-length', IMAGE.length);
      before(incoming, outgoing);
    })(serve);
    expect(await fetched()).toEqual(IMAGE);
  });
});

describe('what is refused', () => {
  test('another checksum, at the end and for a while', async () => {
    const other = Buffer.from(IMAGE);
    other[1000] = 8;
    answer(200, other);
    const error = await failure(fetched());
    expect(error.message).toMatch(/^image debian-13 has the SHA-256 [0-9a-f]{64}, not /);
    expect(error.lasting).toBe(true);
  });

  test('no qcow2, at the start', async () => {
    answer(200, Buffer.from('<html>'.repeat(100)));
    const error = await failure(fetched());
    expect(error.message).toBe('image debian-13: it is no qcow2 image');
    expect(error.lasting).toBe(true);
  });

  test('fewer bytes than a head has', async () => {
    answer(200, Buffer.from('QFI'));
    expect((await failure(fetched())).message).toContain('no qcow2 image');
  });

  test('a connection that is cut', async () => {
    serve = (_incoming, outgoing) => {
      outgoing.writeHead(200, { 'content-length': IMAGE.length });
      outgoing.write(IMAGE.subarray(0, 200_000), () => outgoing.destroy());
    };
    const error = await failure(fetched());
    expect(error.message).toMatch(/guest\.qcow2 was cut off: /);
    expect(error.lasting).toBe(false);
  });

  test('a length that nobody tells', async () => {
    serve = (_incoming, outgoing) => {
      outgoing.writeHead(200, { 'transfer-encoding': 'chunked' });
      outgoing.end(IMAGE);
    };
    expect((await failure(fetched())).message).toMatch(
      /does not tell the length of image debian-13/,
    );
  });

  test.each([
    [404, 'guest.qcow2 answers 404'],
    [503, 'guest.qcow2 answers 503'],
    [304, 'guest.qcow2 answers 304'],
  ])('status %i', async (status, message) => {
    answer(status, Buffer.alloc(0));
    expect((await failure(fetched())).message).toContain(message);
  });

  test('a way that leads off https', async () => {
    serve = (_incoming, outgoing) => {
      outgoing.writeHead(301, { location: 'http://127.0.0.1/guest.qcow2' }).end();
    };
    expect((await failure(fetched())).message).toContain('leads to http://, away from https');
  });

  test('a way that goes in circles', async () => {
    serve = (_incoming, outgoing) => {
      outgoing.writeHead(301, { location: '/guest.qcow2' }).end();
    };
    expect((await failure(fetched())).message).toContain('leads from one address to the next');
  });

  test('a server that nobody vouches for', async () => {
    answer(200, IMAGE);
    const call = download(imageOf(), undefined, AbortSignal.timeout(5_000));
    expect((await failure(call)).message).toContain('cannot be reached');
  });

  test('to go on when the signal says stop', async () => {
    serve = () => undefined;
    const stop = new AbortController();
    const call = fetched(imageOf(), stop.signal);
    stop.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
  });
});
