/** Random secrets that all servers on a store share, made by the first that asks. Never configured, logged or shown. */
import { randomBytes } from 'node:crypto'
import { type Database, sql } from './database.ts'
import type { Migration } from './migrations.ts'

export const secretMigration: Migration = {
  number: 9,
  name: 'secrets',
  postgres: `CREATE TABLE bartleby.secrets (name text PRIMARY KEY, value bytea NOT NULL);`,
  sqlite: `CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;`,
}

/** Best for HMAC-SHA256. */
const SECRET_BYTES = 32

/** By primary key. */
const readSecret = sql('secrets.read', 'SELECT value FROM bartleby.secrets WHERE name = $1')
/** Of servers that start together, one inserts; the others wait and keep its row. */
const makeSecret = sql(
  'secrets.make',
  'INSERT INTO bartleby.secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING',
)

/** The same for every server on the store; made if missing. */
export function sharedSecret(db: Database, name: string): Promise<Uint8Array> {
  return db.session('secret', async (session) => {
    const read = async () => (await session.rows<{ value: Uint8Array }>(readSecret, name))[0]?.value
    const known = await read()
    if (known !== undefined) return known
    await session.run(makeSecret, name, randomBytes(SECRET_BYTES))
    const made = await read()
    if (made === undefined) throw new Error(`the secret '${name}' was removed while it was being made`)
    return made
  })
}
