/**
 * `pg` (node-postgres). A prepared statement halves the server's time for an `add`, but only works on the connection
 * that prepared it. Poolers in transaction mode break that and give themselves away: another process answers than the
 * one the client was told.
 */
import { refuse } from '../refusal.ts'
import { shortHash } from '../table/table-names.ts'
import { type Adapter, type AdapterRow, insistOn, refuseTransaction } from './adapter.ts'

export interface PgClientLike {
  /** Only pools have it: their statements may each run on another connection. */
  readonly totalCount?: never
  query(query: { name?: string; text: string; values: unknown[] }): Promise<{ rows: readonly AdapterRow[] }>
  /** `I` outside of any transaction. Since `pg` 8.21. */
  getTransactionStatus?(): string | null
}

export interface PgAdapterOptions {
  /** Left out: each connection is asked once whether it is the server's own. Say `false` where `DISCARD` or `DEALLOCATE` is run. */
  readonly prepare?: boolean
}

const OUTSIDE = 'I'

/** Runs on clients of `pg`: `pool.connect()`, `BEGIN`, `add(client, …)`, `COMMIT`. */
export function pgAdapter(options: PgAdapterOptions = {}): Adapter<PgClientLike> {
  const { prepare } = options
  if (prepare !== undefined && typeof prepare !== 'boolean') refuse('prepare', 'it is neither true nor false')
  const direct = new WeakMap<PgClientLike, boolean>()
  const names = new Map<string, string>()

  async function isDirect(client: PgClientLike): Promise<boolean> {
    // Set by `pg` when it connects; its types omit it.
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
   * Without a transaction the message would be there at once, whatever becomes of the change. A BEGIN that was not
   * waited for counts: a statement behind it comes back with its status.
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
