/**
 * An office that a command opens on a store and calls like a server, without a socket. It works on redrives only where
 * the command sees one through.
 */
import { createHash, randomBytes } from 'node:crypto'
import { userInfo } from 'node:os'
import pino from 'pino'
import type { ConnectionOptions, Fetch } from '../client/transport.ts'
import { type Config, officeOptionsOf } from '../config/index.ts'
import { createHttpServer, type HttpServer } from '../http/server.ts'
import { Office } from '../office.ts'
import { EXIT, failureOf } from '../terminal/exit.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { configOf, requireStore } from './store.ts'

/** No socket listens to it. */
const NAME = 'http://store'
const STANDARD_ERROR = 2

export async function withStoreOffice(
  {
    carriesOut,
    ...flags
  }: { readonly store: string; readonly config: string | undefined; readonly carriesOut: boolean },
  terminal: Terminal,
  work: (connection: ConnectionOptions) => Promise<void>,
): Promise<void> {
  const config = await configOf(flags, terminal)
  await requireStore(config.store)
  const log = pino({ level: 'error' }, pino.destination(STANDARD_ERROR))
  const office = await opened(config, carriesOut, log)
  let server: HttpServer | undefined
  try {
    // Who opens the store may do everything; the token says who that is.
    const token = randomBytes(32).toString('hex')
    const sha256 = createHash('sha256').update(token).digest('hex')
    const auth = { tokens: [{ name: userName(), role: 'admin' as const, sha256 }] }
    server = await createHttpServer(office, { ...config, auth }, log)
    await work({ url: NAME, token, fetch: fetchFrom(server) })
  } finally {
    server?.refuseCalls()
    await server?.app.close()
    await office.close()
  }
}

async function opened(config: Config, carriesOut: boolean, log: pino.Logger): Promise<Office> {
  try {
    return await Office.open({
      ...officeOptionsOf(config, { isPassing: true }),
      carriesOutRedrives: carriesOut,
      log,
    })
  } catch (error) {
    throw failureOf(error, EXIT.failed)
  }
}

const fetchFrom =
  ({ app }: HttpServer): Fetch =>
  async (url, { method, headers, body }) => {
    const reply = await app.inject({
      // Each of the client's methods can be injected.
      method: method as 'GET' | 'POST',
      url: url.slice(NAME.length),
      headers,
      ...(body !== undefined && { payload: body }),
    })
    return { status: reply.statusCode, text: async () => reply.body }
  }

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // Containers have users without a name.
    return 'command line'
  }
}
