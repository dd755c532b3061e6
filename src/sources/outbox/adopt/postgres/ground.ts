/** Adoption on PostgreSQL: steps in order, each safe while producers and readers use the table. */
import { columnsOf, type Layout, newKeyOf } from '../../table/layout.ts'
import { indexesOf, outboxSchema, sideTablesOf } from '../../table/schema.ts'
import { quote, type TableName } from '../../table/table-names.ts'
import { type Filling, fillingOf, fillStep, lackingOf } from '../fill.ts'
import type { AdoptSettings, Ground, Step } from '../report.ts'
import { addedColumns, addingColumns } from '../target.ts'
import {
  noteMissingIdIndex,
  type PostgresAdoption,
  postgresIndexSteps,
  readFacts,
  refuseForeignNamesakes,
} from './indexes.ts'
import { AdoptSession, brief } from './session.ts'

export async function postgresGround(url: string, settings: AdoptSettings): Promise<Ground> {
  const session = await AdoptSession.open(url, settings)
  const { names, dryRun } = settings
  return {
    dialect: 'postgres',
    run: session.run,
    change: (sql) => session.change(sql),
    async begin() {
      if (!dryRun) await session.alone(names.sqlTable, names.table)
    },
    script: (sql) => session.briefly(sql),
    create: () => ({
      what: `make the table ${names.table}`,
      sql: outboxSchema('postgres', settings.options).trimEnd(),
      needed: () => true,
    }),
    async plan(adoption) {
      const facts = await readFacts(names, session.run)
      const indexes = indexesOf(names, 'postgres').map(({ name }) => name)
      await refuseForeignNamesakes(facts, indexes, session.run)
      return planOf({ ...adoption, session, facts })
    },
    close: () => session.close(),
  }
}

function planOf(adoption: PostgresAdoption): readonly Step[] {
  noteMissingIdIndex(adoption)
  return [
    alterStep(adoption),
    settingsStep(adoption),
    sideTablesStep(adoption),
    fillStep(adoption, postgresFilling(adoption)),
    ...postgresIndexSteps(adoption),
    ...(adoption.settings.enforce ? enforceSteps(adoption) : []),
  ]
}

/**
 * Adds all columns, and the default that gives keys to rows of producers that know no keys, in one change: the table is
 * locked once, for a moment. No row is rewritten: columns are empty or have a constant default. The default of the key
 * is set apart, because as part of the column it would fill every row.
 */
function alterStep(adoption: PostgresAdoption): Step {
  const { layout, missing, facts } = adoption
  const hasDefault = facts.columns.get(layout.columns.idempotencyKey)?.hasDefault === true
  const changes = [
    ...addedColumns(adoption).map((column) => `ADD COLUMN IF NOT EXISTS ${column}`),
    ...(hasDefault ? [] : [`ALTER COLUMN ${layout.c.idempotencyKey} SET DEFAULT ${newKeyOf(layout)}`]),
  ]
  return {
    what:
      missing.length === 0
        ? 'give keys to new rows that come without one'
        : `${addingColumns(adoption)}, and keys for new rows that come without one`,
    sql: changes.length === 0 ? '' : brief(`ALTER TABLE ${layout.sqlTable}\n  ${changes.join(',\n  ')}`),
    needed: () => changes.length > 0,
  }
}

/** As in new tables. Settings of the owner stay. */
const SETTINGS = { fillfactor: '80', autovacuum_vacuum_scale_factor: '0.01' } as const

function settingsStep({ layout, facts }: PostgresAdoption): Step {
  const unset = Object.entries(SETTINGS).filter(([name]) => !facts.settings.has(name))
  const values = unset.map(([name, value]) => `${name} = ${value}`).join(', ')
  return {
    what: 'leave room for updates, and vacuum often',
    sql: unset.length === 0 ? '' : brief(`ALTER TABLE ${layout.sqlTable} SET (${values})`),
    needed: () => unset.length > 0,
  }
}

function sideTablesStep({ run, layout }: PostgresAdoption): Step {
  const isThere = async (table: TableName) => (await columnsOf('postgres', table, run)).size > 0
  return {
    what: `make the tables beside it, ${layout.keys.plainTable} and ${layout.wake.plainTable}`,
    sql: sideTablesOf(layout, 'postgres').trim(),
    needed: async () => !((await isThere(layout.keys)) && (await isThere(layout.wake))),
  }
}

/** Lets replicas and vacuum keep up. */
const PAUSE_MS = 20

/**
 * Locks the first rows behind the last id that need filling and are free, and fills them, in one statement. It walks
 * the index of ids: all chunks together read the table once.
 */
function chunkStatement(layout: Layout, first: boolean): string {
  const { id, idempotencyKey } = layout.c
  const behind = first ? '' : ` AND ${id} > ${layout.typed('id', '$2')}`
  return `WITH chosen AS MATERIALIZED (
  SELECT ${id} AS chosen_id, ${idempotencyKey} IS NULL AS keyless FROM ${layout.sqlTable}
  WHERE ${lackingOf(layout)}${behind} ORDER BY ${id} LIMIT $1 FOR UPDATE SKIP LOCKED
), filled AS (
  UPDATE ${layout.sqlTable} AS message SET ${fillingOf(layout, 'message.')}
  FROM chosen WHERE message.${id} = chosen_id RETURNING keyless
)
SELECT count(*) AS rows, count(*) FILTER (WHERE keyless) AS keys,
  (SELECT chosen_id::text FROM chosen ORDER BY chosen_id DESC LIMIT 1) AS last FROM filled`
}

const postgresFilling = ({ session, layout, settings: { chunk } }: PostgresAdoption): Filling<string> => ({
  sql: `-- $1: ${chunk}, the rows of a chunk; $2: the last id of the chunk before\n${chunkStatement(layout, false)};`,
  holders: () => session.holdersOf(layout.sqlTable),
  pauseMs: () => PAUSE_MS,
  async fill(after) {
    const isFirst = after === null
    const parameters = isFirst ? [chunk] : [chunk, after]
    // Without statistics PostgreSQL believes that few rows lack new columns, and would sort the whole table for every
    // chunk.
    if (isFirst) await session.run(`ANALYZE ${layout.sqlTable}`, [])
    const [row] = await session.run(chunkStatement(layout, isFirst), parameters)
    const last = row?.last == null ? null : String(row.last)
    return { rows: Number(row?.rows), keys: Number(row?.keys), last }
  },
})

/**
 * Makes the key NOT NULL without reading the table under a lock: a check that is not validated yet keeps new rows
 * right, validating it reads the table while others write, and then NOT NULL is known to hold.
 */
function enforceSteps({ run, layout }: PostgresAdoption): readonly Step[] {
  const key = layout.c.idempotencyKey
  const check = `${layout.indexPrefix}_key_given`
  const table = `ALTER TABLE ${layout.sqlTable}`
  const look = async () => {
    const { columns, constraints } = await readFacts(layout, run)
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
  ): Step => ({ what, sql: brief(`${table} ${change}`), needed: async () => needed(await look()) })
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
