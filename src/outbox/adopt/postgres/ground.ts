/** Adoption on PostgreSQL: the steps in their order, each safe while producers and readers use the table. */
import { columnOf, columnsOf, type Layout } from '../../layout.ts'
import { indexesOf, outboxSchema, sideTablesOf } from '../../schema.ts'
import { fillStep, newKeyOf } from '../fill.ts'
import { type Ground, type Step, scriptStep } from '../plan.ts'
import type { AdoptSettings, Findings } from '../report.ts'
import { addedColumns, addingColumns, type Target } from '../target.ts'
import { postgresFilling } from './backfill.ts'
import { readFacts, refuseForeignNamesakes, type TableFacts } from './catalog.ts'
import { enforceSteps } from './enforce.ts'
import { indexSteps, noteMissingIdIndex } from './indexes.ts'
import { AdoptSession, brief } from './session.ts'

/** Opens a PostgreSQL database to adopt a table in it. */
export async function postgresGround(url: string, settings: AdoptSettings): Promise<Ground> {
  const session = await AdoptSession.open(url, settings)
  const { names, dryRun } = settings
  return {
    dialect: 'postgres',
    run: session.run,
    async begin() {
      if (!dryRun) await session.alone(names.sqlTable, names.table)
    },
    create: () =>
      scriptStep(
        `make the table ${names.table}`,
        outboxSchema('postgres', settings.options).trimEnd(),
        () => true,
        (sql) => session.run(sql, []),
      ),
    async plan(target, findings) {
      const facts = await readFacts(names, session.run)
      await refuseForeignNamesakes(
        facts,
        indexesOf(names, 'postgres').map(({ name }) => name),
        session.run,
      )
      return planOf(session, target, facts, settings, findings)
    },
    close: () => session.close(),
  }
}

function planOf(
  session: AdoptSession,
  target: Target,
  facts: TableFacts,
  settings: AdoptSettings,
  findings: Findings,
): readonly Step[] {
  const { layout } = target
  const work = { session, layout, facts, settings, findings }
  noteMissingIdIndex(work)
  return [
    alterStep(session, target, facts),
    settingsStep(session, layout, facts),
    sideTablesStep(session, layout),
    fillStep(layout, session.run, postgresFilling(session, layout, settings), settings, findings),
    ...indexSteps(work),
    ...(settings.enforce ? enforceSteps(session, layout) : []),
  ]
}

/**
 * Adds all columns, and the default that gives keys to the rows of producers that know nothing of keys, in one change:
 * the table is locked once, for a moment. No row is rewritten: the columns are empty or have one constant default. The
 * default of the key is set by itself, because as a part of the column it would fill, and so rewrite, every row.
 */
function alterStep(session: AdoptSession, target: Target, facts: TableFacts): Step {
  const { layout, missing } = target
  const hasDefault = facts.columns.get(layout.columns.idempotencyKey)?.hasDefault === true
  const changes = [
    ...addedColumns(target).map((column) => `ADD COLUMN IF NOT EXISTS ${column}`),
    ...(hasDefault
      ? []
      : [`ALTER COLUMN ${columnOf(layout, 'idempotencyKey')} SET DEFAULT ${newKeyOf(layout)}`]),
  ]
  return scriptStep(
    missing.length === 0
      ? 'give keys to new rows that come without one'
      : `${addingColumns(target)}, and keys for new rows that come without one`,
    changes.length === 0 ? '' : brief(`ALTER TABLE ${layout.sqlTable}\n  ${changes.join(',\n  ')}`),
    () => changes.length > 0,
    (sql) => session.briefly(sql),
  )
}

/** As new tables have them: pages with room for updates, and tidying often. What the owner has set stays. */
const SETTINGS = { fillfactor: '80', autovacuum_vacuum_scale_factor: '0.01' } as const

function settingsStep(session: AdoptSession, layout: Layout, facts: TableFacts): Step {
  const unset = Object.entries(SETTINGS).filter(([name]) => !facts.settings.has(name))
  const values = unset.map(([name, value]) => `${name} = ${value}`).join(', ')
  return scriptStep(
    'leave room for updates, and vacuum often',
    unset.length === 0 ? '' : brief(`ALTER TABLE ${layout.sqlTable} SET (${values})`),
    () => unset.length > 0,
    (sql) => session.briefly(sql),
  )
}

function sideTablesStep(session: AdoptSession, layout: Layout): Step {
  const isThere = async (sqlTable: string, plainTable: string) =>
    (await columnsOf('postgres', { sqlTable, plainTable }, session.run)).size > 0
  return scriptStep(
    `make the tables beside it, ${layout.plainKeysTable} and ${layout.plainWakeTable}`,
    sideTablesOf(layout, 'postgres').trim(),
    async () =>
      !(
        (await isThere(layout.sqlKeysTable, layout.plainKeysTable)) &&
        (await isThere(layout.sqlWakeTable, layout.plainWakeTable))
      ),
    (sql) => session.run(sql, []),
  )
}
