/** The steps of indexes, and the rows in the way of the unique one: those that share a tenant and a key. */
import { setTimeout as pause } from 'node:timers/promises'
import { type Layout, newKeyOf, type RunSql } from '../table/layout.ts'
import { type IndexDefinition, indexesOf } from '../table/schema.ts'
import { type Adoption, carryOut, type Duplicate, type Duplicates, type Step } from './report.ts'

const LISTED = 20
const LISTED_IDS = 5

/** One pass over the table. Rows without tenant or key are never alike. */
export async function findDuplicates(layout: Layout, run: RunSql): Promise<Duplicates> {
  const { c } = layout
  const [tenantText, keyText] = [layout.text(c.tenantId), layout.text(c.idempotencyKey)]
  const groups = await run(
    `SELECT ${tenantText} AS tenant, ${keyText} AS key, count(*) AS rows, count(*) OVER () AS total
     FROM ${layout.sqlTable} WHERE ${c.tenantId} IS NOT NULL AND ${c.idempotencyKey} IS NOT NULL
     GROUP BY ${c.tenantId}, ${c.idempotencyKey} HAVING count(*) > 1 ORDER BY 3 DESC, 1, 2 LIMIT ${LISTED}`,
    [],
  )
  const first = layout.dialect === 'postgres' ? ['$1', '$2'] : ['?1', '?2']
  const duplicates: Duplicate[] = []
  for (const { tenant, key, rows } of groups) {
    const ids = await run(
      `SELECT ${layout.text(c.id)} AS id FROM ${layout.sqlTable}
       WHERE ${tenantText} = ${first[0]} AND ${keyText} = ${first[1]}
       ORDER BY ${c.createdAt}, ${c.id} LIMIT ${LISTED_IDS}`,
      [tenant, key],
    )
    duplicates.push({
      tenantId: String(tenant),
      idempotencyKey: String(key),
      rows: Number(rows),
      ids: ids.map(({ id }) => String(id)),
    })
  }
  return { listed: duplicates, count: Number(groups[0]?.total ?? 0) }
}

const HELD_PAUSE_MS = 200

/** A step for each index, and one for the duplicates in the way of the unique one, unless the table has that by another name. */
export function indexSteps(
  adoption: Adoption,
  isUnique: boolean,
  build: (index: IndexDefinition) => Step,
): readonly Step[] {
  const { layout, missing, script, settings, findings } = adoption
  // In a dry run the column of keys may be missing.
  const looking = !isUnique && !(settings.dryRun && missing.includes('idempotencyKey'))
  return indexesOf(layout, layout.dialect).flatMap((index) => {
    const step = build(index)
    if (!index.unique) return [step]
    const unique: Step = {
      ...step,
      needed: () => !isUnique,
      run: async () => (findings.duplicatesLeft ? 'skipped' : carryOut(step, script)),
    }
    return [rekeyStep(adoption, looking), unique]
  })
}

/** Looks for duplicates, in a dry run too, and gives all but the oldest a new key when asked to. `looking`: there may be some. */
function rekeyStep({ layout, run, change, settings, findings }: Adoption, looking: boolean): Step {
  const { chunk, rekeyDuplicates, lockWaitMs, signal } = settings
  const statement = rekeyStatement(layout, chunk)
  return {
    what: 'give rows with the tenant and key of an older one a key of their own',
    sql: `${statement};`,
    async needed() {
      if (looking) findings.duplicates = await findDuplicates(layout, run)
      findings.duplicatesLeft = findings.duplicates.count > 0
      return findings.duplicatesLeft
    },
    async run() {
      if (!rekeyDuplicates) return 'skipped'
      const deadlineMs = performance.now() + lockWaitMs
      while (findings.duplicatesLeft) {
        signal?.throwIfAborted()
        const rows = await change(statement)
        findings.rekeyed += rows
        if (rows === chunk) continue
        findings.duplicatesLeft = (await findDuplicates(layout, run)).count > 0
        if (findings.duplicatesLeft && performance.now() > deadlineMs) return 'skipped'
        if (findings.duplicatesLeft) await pause(HELD_PAUSE_MS, undefined, { signal })
      }
      return 'done'
    },
  }
}

/** Gives all but the oldest of each group a key of their own, `chunk` rows at a time. Numbers the whole table: duplicates are few. */
function rekeyStatement(layout: Layout, chunk: number): string {
  const { c } = layout
  const [row, lock] =
    layout.dialect === 'postgres' ? [c.id, ' FOR UPDATE OF message SKIP LOCKED'] : ['rowid', '']
  return `UPDATE ${layout.sqlTable} SET ${c.idempotencyKey} = ${newKeyOf(layout)} WHERE ${row} IN (
  SELECT message.${row} FROM ${layout.sqlTable} AS message JOIN (
    SELECT ${row} AS id, row_number() OVER (PARTITION BY ${c.tenantId}, ${c.idempotencyKey} ORDER BY ${c.createdAt}, ${c.id}) AS place
    FROM ${layout.sqlTable} WHERE ${c.tenantId} IS NOT NULL AND ${c.idempotencyKey} IS NOT NULL
  ) AS twin ON message.${row} = twin.id WHERE twin.place > 1 ORDER BY message.${row} LIMIT ${chunk}${lock})`
}
