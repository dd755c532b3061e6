/** Connections to PostgreSQL: pipelined, droppable at any moment, lent for a piece of work, and what counts as their loss. */
import { Socket } from 'node:net'
import pg from 'pg'
import { StoreUnavailable } from './database.ts'

export const CONNECT_TIMEOUT_MS = 5_000

type Written = (error?: Error | null) => void

/**
 * A socket that sends everything written in one turn of the event loop with one system call. A transaction
 * writes BEGIN and its first statements, and later its last statements and COMMIT, one after the other; a system
 * call for each was a third of the CPU time of small transactions.
 */
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

/** A client of ours: pipelined, and on a socket that can be closed whatever it waits for. */
export class DroppableClient extends pg.Client {
  readonly #socket: GatheringSocket

  constructor(config?: pg.ClientConfig) {
    const socket = new GatheringSocket()
    super({ ...config, pipeline: true, stream: () => socket })
    this.#socket = socket
  }

  /** Closes the connection at once. What it was asked fails; `end` would wait for the answers. */
  drop(): void {
    this.#socket.destroy()
  }
}

/** A connection to use for a while. */
export interface Connection {
  readonly client: pg.ClientBase
  /** Whether a pooler lends it by the transaction: nothing that a session keeps is there for the next. */
  readonly isPooled: boolean
  /** Whether the server is older than version 17: it plans some statements otherwise, see database.ts. */
  readonly isOlder: boolean
}

export interface LentConnection extends Connection {
  /** Closes it at once, whatever it waits for, and keeps others from getting it. */
  drop(): void
}

/** Runs `work` on a connection, and leaves it, broken or not. */
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

/** What node-postgres says, without a code, when a connection is lost or was never made. */
const CONNECTION_LOST =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|Query read timeout|timeout expired)/

/** Connection losses, also of who was silent for too long (25P03), a server that only reads (25006), shutdowns (57P), resource limits such as a full disk (53) and system errors (58). */
function isOutage(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return /^(08|25006|25P03|53|57P|58)/.test(error.code ?? '')
  if (!(error instanceof Error)) return false
  return (
    ('code' in error && typeof error.code === 'string' && /^E[A-Z]+$/.test(error.code)) ||
    CONNECTION_LOST.test(error.message)
  )
}

/**
 * Poolers that stand between a client and PostgreSQL, and may lend it another connection for each transaction. They give themselves
 * away: the process that a client was told it talks to is not the one that answers.
 */
interface ToldClient {
  query(question: { text: string; query_timeout: number }): Promise<{ readonly rows: readonly unknown[] }>
}

/** What is at the other end. One trip, which is part of connecting: it may take `timeoutMs`. */
export async function lookBehind(
  client: ToldClient,
  timeoutMs: number,
): Promise<Pick<Connection, 'isPooled' | 'isOlder'>> {
  // Set by `pg` when it connects; its types do not tell.
  const toldPid: unknown = Reflect.get(client, 'processID')
  const { rows } = await client.query({
    text: "SELECT pg_backend_pid() AS pid, current_setting('server_version_num')::int < 170000 AS older",
    query_timeout: timeoutMs,
  })
  // Who is no PostgreSQL may answer anything.
  const [row] = rows as readonly { readonly pid?: unknown; readonly older?: unknown }[]
  return { isPooled: row?.pid !== toldPid, isOlder: row?.older === true }
}
