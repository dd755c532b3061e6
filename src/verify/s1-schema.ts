/** S1: the schema is whole. A restore that failed halfway leaves a store that works, lets in what unique indexes keep out, and is slow. */

import { MIGRATIONS } from '../migrations.ts'
import { type Integer, type Session, sql } from '../store/database.ts'
import { StoreTooNew } from '../store/migrations.ts'
import { missingParts, partName, type SchemaPart } from '../store/schema/parts.ts'
import type { Audit, Invariant } from './invariant.ts'

/** Without these the other checks have nothing to look at. */
const isBody = ({ kind }: SchemaPart): boolean => kind === 'table' || kind === 'column'

export const wholeSchema = {
  id: 'S1',
  promise: 'the store has every table, column, key and index of this version',
  async *check({ session }: Pick<Audit, 'session'>) {
    for (const part of await missingParts(session)) {
      const remedy = part.statement === null ? 'only a backup has it' : '`bartleby migrate --repair` makes it'
      yield { what: `${partName(part)} is missing; ${remedy}`, row: { kind: part.kind, name: part.name } }
    }
  },
} satisfies Invariant

/** Whether the store has all that the other checks read. */
export const hasBody = async (session: Session): Promise<boolean> =>
  !(await missingParts(session)).some(isBody)

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

/** Refuses stores that this program cannot judge: only the version that it knows has the tables it looks at. */
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
