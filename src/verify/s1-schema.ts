/** S1: the schema is whole. A restore that failed halfway leaves a store that works, lets in what unique indexes keep out, and is slow. */
import type { Session } from '../db/database.ts'
import { missingParts, partName, type SchemaPart } from '../db/schema/parts.ts'
import type { Audit, Invariant } from './invariant.ts'

/** Without these the other checks have nothing to look at. */
const isBody = ({ kind }: SchemaPart): boolean => kind === 'table' || kind === 'column'

export const wholeSchema = {
  id: 'S1',
  promise: 'the store has every table, column, key and index of this version',
  rows: () => 0,
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
