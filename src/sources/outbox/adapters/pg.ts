/**
 * `pg` (node-postgres). A prepared statement halves the time that an `add` takes the server, but only works where
 * statements of a client reach the connection that prepared them. Poolers in transaction mode break that, and give
 * themselves away: the process that a client was told it talks to is not the one that answers.
 */
import { refuse } from '../refusal.ts'
import { shortHash } from '../table/table-names.ts'
import { type Adapter, type AdapterRow, insistOn, refuseTransaction } from './adapter.ts'

/** A client with a transaction begun on it. */
export interface PgClientLike {
  /** What a pool has: its statements may each run on another connection. */
  readonly totalCount?: never
  query(query: { name?: string; text: string; values: unknown[] }): Promise<{ rows: readonly AdapterRow[] }>
  /** What the server said last: `I` outside of any transaction. Since `pg` 8.21; before that nobody tells. */
  getTransactionStatus?(): string | null
}

export interface PgAdapterOptions {
  /**
   * Whether statements are prepared. Left out, each connection is asked once whether it is the server's own. Say
   * `false` where `DISCARD` or `DEALLOCATE` is run on connections.
   */
  readonly prepare?: boolean
}

/** The status of a connection on which no transaction is begun. */
const OUTSIDE = 'I'

/** Runs on clients of `pg`: `pool.connect()`, `BEGIN`, `add(client, …)`, `COMMIT`. */
export function pgAdapter(options: PgAdapterOptions = {}): Adapter<PgClientLike> {
  const { prepare } = options
  if (prepare !== undefined && typeof prepare !== 'boolean') refuse('prepare', 'it is neither true nor false')
  const direct = new WeakMap<PgClientLike, boolean>()
  const names = new Map<string, string>()

  async function isDirect(client: PgClientLike): Promise<boolean> {
    // Set by `pg` when it connects; its types do not tell.
    const toldPid: unknown = Reflect.get(client, 'processID')
    if (typeof toldPid !== 'number') return false
    const { rows } = await client.query({ text: 'SELECT pg_backend_pid() AS pid', values: [] })
    return rows[0]?.pid === toldPid
  }

  async function prepares(client: PgClientLike): Promise<boolean> {
    const known = prepare ?? direct.get(client)
    if (known !== undefined) return known
    const asked = await isDirect(client)
    direct.set(client, asked)
    return asked
  }

  /**
   * Without a transaction the message would be there at once, whatever becomes of the change that it tells of. A BEGIN
   * that was sent and not waited for counts: a statement behind it comes back with the status that it has made.
   */
  async function insistOnTransaction(client: PgClientLike): Promise<void> {
    if (client.getTransactionStatus?.() !== OUTSIDE) return
    await client.query({ text: 'SELECT 1', values: [] })
    if (client.getTransactionStatus() === OUTSIDE)
      refuseTransaction('no transaction is begun on this client; run BEGIN first')
  }

  function nameOf(sql: string): string {
    let name = names.get(sql)
    if (name === undefined) {
      name = `bartleby_${shortHash(sql)}`
      names.set(sql, name)
    }
    return name
  }

  return {
    dialect: 'postgres',
    async run(client, text, parameters) {
      insistOn(client, 'query', 'a client of pg')
      if ('totalCount' in client)
        refuseTransaction(
          'it is a pool, whose statements may each run on another connection; take a client from it with connect() and begin a transaction there',
        )
      await insistOnTransaction(client)
      const values = [...parameters]
      const named = (await prepares(client)) ? { name: nameOf(text) } : {}
      return (await client.query({ ...named, text, values })).rows
    },
  }
}
