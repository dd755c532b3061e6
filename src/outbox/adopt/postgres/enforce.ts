/**
 * Makes the key NOT NULL without reading the table under a lock: a check that is not yet validated keeps new rows right,
 * validating it reads the table while others write, and then NOT NULL is known to hold.
 */
import { columnOf, type Layout } from '../../layout.ts'
import { quote } from '../../table-names.ts'
import { type Step, scriptStep } from '../plan.ts'
import { readFacts } from './catalog.ts'
import { type AdoptSession, brief } from './session.ts'

export function enforceSteps(session: AdoptSession, layout: Layout): readonly Step[] {
  const key = columnOf(layout, 'idempotencyKey')
  const check = `${layout.indexPrefix}_key_given`
  const table = `ALTER TABLE ${layout.sqlTable}`
  /** Whether the column refuses NULL, and what is known of the check. */
  const look = async () => {
    const { columns, constraints } = await readFacts(layout, session.run)
    return {
      notNull: columns.get(layout.columns.idempotencyKey)?.notNull === true,
      checked: constraints.has(check),
      validated: constraints.get(check) === true,
    }
  }
  const step = (
    what: string,
    change: string,
    needed: (now: Awaited<ReturnType<typeof look>>) => boolean,
  ): Step =>
    scriptStep(
      what,
      brief(`${table} ${change}`),
      async () => needed(await look()),
      (sql) => session.briefly(sql),
    )
  return [
    step(
      'refuse new rows without a key',
      `ADD CONSTRAINT ${quote(check)} CHECK (${key} IS NOT NULL) NOT VALID`,
      ({ notNull, checked }) => !notNull && !checked,
    ),
    step(
      'make sure that all rows have one',
      `VALIDATE CONSTRAINT ${quote(check)}`,
      ({ notNull, validated }) => !notNull && !validated,
    ),
    step('make the key NOT NULL', `ALTER COLUMN ${key} SET NOT NULL`, ({ notNull }) => !notNull),
    step(
      'drop the check, which says the same',
      `DROP CONSTRAINT IF EXISTS ${quote(check)}`,
      ({ notNull, checked }) => !notNull || checked,
    ),
  ]
}
