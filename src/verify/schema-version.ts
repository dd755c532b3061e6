/** Refuses stores that this program cannot judge: only the version that it knows has the tables it looks at. */
import { type Integer, type Session, sql } from '../db/database.ts'
import { StoreTooNew } from '../db/migrations.ts'
import { MIGRATIONS } from '../migrations.ts'

/** The store has not been brought up to this version, or is none of ours. */
export class StoreTooOld extends Error {
  override readonly name = 'StoreTooOld'
  /** 0 where there is nothing of ours. */
  readonly found: number

  constructor(found: number, known: number) {
    super(
      `the store is at schema version ${found}, this program checks version ${known}; start the server once or run \`bartleby migrate\`, then verify again`,
    )
    this.found = found
  }
}

const findTable = sql('verify.findMigrations', {
  postgres: `SELECT 1 AS found WHERE to_regclass('bartleby.migrations') IS NOT NULL`,
  sqlite: `SELECT 1 AS found FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'`,
})
const readVersion = sql('verify.version', 'SELECT max(number) AS version FROM bartleby.migrations')

/** Throws unless the store has exactly the schema of this program. */
export async function requireThisVersion(session: Session): Promise<void> {
  const known = Math.max(...MIGRATIONS.map(({ number }) => number))
  const found = await versionOf(session)
  if (found < known) throw new StoreTooOld(found, known)
  if (found > known) throw new StoreTooNew(found, known)
}

async function versionOf(session: Session): Promise<number> {
  if ((await session.rows(findTable)).length === 0) return 0
  const [row] = await session.rows<{ version: Integer | null }>(readVersion)
  return Number(row?.version ?? 0)
}
