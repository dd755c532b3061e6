/** Connections to PostgreSQL: pipelined, lent for a piece of work, droppable at any moment. */
import { Socket } from 'node:net'
import pg from 'pg'
import { StoreUnavailable } from './database.ts'

export const CONNECT_TIMEOUT_MS = 5_000

type Written = (error?: Error | null) => void

/** Sends all writes of one event loop turn with one system call: a call for each was a third of the CPU time of small transactions. */
class GatheringSocket extends Socket {
  #gathering = false

  override write(chunk: string | Uint8Array, written?: Written): boolean
  override write(chunk: string | Uint8Array, encoding?: BufferEncoding, written?: Written): boolean
  override write(
    chunk: string | Uint8Array,
    encoding?: BufferEncoding | Written,
    written?: Written,
  ): boolean {
    if (!this.#gathering) {
      this.#gathering = true
      this.cork()
      process.nextTick(() => {
        this.#gathering = false
        this.uncork()
      })
    }
    return typeof encoding === 'function'
      ? super.write(chunk, encoding)
      : super.write(chunk, encoding, written)
  }
}

/** Pipelined, on a socket that can be closed whatever it waits for. */
export class DroppableClient extends pg.Client {
  readonly #socket: GatheringSocket

  constructor(config?: pg.ClientConfig) {
    const socket = new GatheringSocket()
    super({ ...config, pipeline: true, stream: () => socket })
    this.#socket = socket
  }

  /** Closes at once; pending calls fail. `end` would wait for answers. */
  drop(): void {
    this.#socket.destroy()
  }
}

export interface Connection {
  readonly client: pg.ClientBase
  /** A pooler lends it by the transaction: nothing of a session lasts. */
  readonly isPooled: boolean
  /** Before version 17, which plans some statements otherwise, see database.ts. */
  readonly isOlder: boolean
}

export interface LentConnection extends Connection {
  /** Closes it at once and keeps others from getting it. */
  drop(): void
}

/** Leaves the connection in the end, broken or not. */
export async function onConnection<T>(
  work: (connection: LentConnection) => Promise<T>,
  connect: () => Promise<Connection & { leave(broken: boolean): Promise<void> }>,
): Promise<T> {
  const { leave, ...connection } = await connect().catch((error: unknown) => {
    throw new StoreUnavailable(`cannot connect to PostgreSQL: ${messageOf(error)}`, { cause: error })
  })
  const { client } = connection
  let broken = false
  const onError = () => {
    broken = true
  }
  const drop = () => {
    broken = true
    if (client instanceof DroppableClient) client.drop()
  }
  client.on('error', onError)
  try {
    return await work({ ...connection, drop })
  } catch (error) {
    if (!isOutage(error)) throw error
    broken ||= !(error instanceof pg.DatabaseError)
    throw new StoreUnavailable(`PostgreSQL failed: ${messageOf(error)}`, { cause: error })
  } finally {
    await leave(broken)
    client.off('error', onError)
  }
}

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message || error.name : String(error)

/** Messages of node-postgres without a code, when a connection is lost or was never made. */
const CONNECTION_LOST =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|Query read timeout|timeout expired)/

/** Lost connections (also 25P03, idle for too long), read-only servers (25006), shutdowns (57P), full disks (53), system errors (58). */
function isOutage(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return /^(08|25006|25P03|53|57P|58)/.test(error.code ?? '')
  if (!(error instanceof Error)) return false
  return (
    ('code' in error && typeof error.code === 'string' && /^E[A-Z]+$/.test(error.code)) ||
    CONNECTION_LOST.test(error.message)
  )
}

/** A pooler between client and PostgreSQL shows itself: the process id of the greeting is not that of the one who answers. */
interface ToldClient {
  query(question: { text: string; query_timeout: number }): Promise<{ readonly rows: readonly unknown[] }>
}

/** One trip, as part of connecting. */
export async function lookBehind(
  client: ToldClient,
  timeoutMs: number,
): Promise<Pick<Connection, 'isPooled' | 'isOlder'>> {
  // Set by `pg` when it connects, but not in its types.
  const toldPid: unknown = Reflect.get(client, 'processID')
  const { rows } = await client.query({
    text: "SELECT pg_backend_pid() AS pid, current_setting('server_version_num')::int < 170000 AS older",
    query_timeout: timeoutMs,
  })
  // A server that is no PostgreSQL may answer anything.
  const [row] = rows as readonly { readonly pid?: unknown; readonly older?: unknown }[]
  return { isPooled: row?.pid !== toldPid, isOlder: row?.older === true }
}
