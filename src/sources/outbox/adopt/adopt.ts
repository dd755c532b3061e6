/**
 * Adoption: makes an outbox of a table that others own and use, without stopping them, or makes the table. Every step
 * can be run again, so a killed adoption is simply started anew.
 */
import { checkNumber, decimal, refuse } from '../refusal.ts'
import { columnsOf } from '../table/layout.ts'
import { nameTable, tableOptionsOf } from '../table/table-names.ts'
import {
  type AdoptOptions,
  type AdoptReport,
  type AdoptSettings,
  type Findings,
  type Ground,
  runPlan,
} from './report.ts'
import { targetOf } from './target.ts'

const MOST_CHUNK = 1_000_000
const LONGEST_WAIT_SECONDS = 86_400

/** Makes an outbox of a table in the database at `url`. */
export async function adoptTable(url: string, options: AdoptOptions = {}): Promise<AdoptReport> {
  const settings = settingsOf(options)
  const ground = await openGround(url, settings)
  try {
    return await adopt(ground, settings)
  } finally {
    await ground.close()
  }
}

async function adopt(ground: Ground, settings: AdoptSettings): Promise<AdoptReport> {
  const { names, options } = settings
  const { dialect, run, change, script } = ground
  const findings: Findings = {
    keysFilled: 0,
    rekeyed: 0,
    duplicates: { listed: [], count: 0 },
    duplicatesLeft: false,
    notes: [],
  }
  await ground.begin()
  const found = await columnsOf(dialect, names, run)
  const isNew = found.size === 0
  const steps = isNew
    ? [ground.create()]
    : await ground.plan({
        ...targetOf(dialect, names, options, found),
        run,
        change,
        script,
        settings,
        findings,
      })
  const reports = await runPlan(steps, ground, settings)
  const { rows, keysMissing } = await countRows(ground, settings, isNew)
  return {
    table: names.table,
    created: isNew && !settings.dryRun,
    rows,
    keysMissing,
    keysFilled: findings.keysFilled,
    duplicates: findings.duplicates.listed,
    duplicateCount: findings.duplicates.count,
    rekeyed: findings.rekeyed,
    complete: keysMissing === 0 && !findings.duplicatesLeft,
    steps: reports,
    notes: findings.notes,
  }
}

/** One pass over the table. */
async function countRows(ground: Ground, { names, dryRun }: AdoptSettings, isNew: boolean) {
  if (isNew && dryRun) return { rows: 0, keysMissing: 0 }
  const columns = await columnsOf(ground.dialect, names, ground.run)
  const key = names.columns.idempotencyKey
  // The column may be missing in a dry run.
  const keys = columns.has(key) ? `count("${key.replaceAll('"', '""')}")` : '0'
  const [row] = await ground.run(`SELECT count(*) AS rows, ${keys} AS keys FROM ${names.sqlTable}`, [])
  const rows = Number(row?.rows)
  return { rows, keysMissing: rows - Number(row?.keys) }
}

async function openGround(url: string, settings: AdoptSettings): Promise<Ground> {
  const { readStoreUrl, STORE_URL_FORMS } = await import('../../../store/store-url.ts')
  const store = readStoreUrl(url)
  // The URL may hold a password, and is not repeated.
  if (store === null) refuse('url', `it is none of ${STORE_URL_FORMS}`)
  switch (store.kind) {
    case 'memory':
      return refuse('url', 'a database in memory is known to its own process only')
    case 'postgres':
      return (await import('./postgres/ground.ts')).postgresGround(store.url, settings)
    case 'sqlite':
      return (await import('./sqlite/ground.ts')).sqliteGround(store.path, settings)
  }
}

function settingsOf(options: AdoptOptions): AdoptSettings {
  const tableOptions = tableOptionsOf(options)
  const { chunk = 10_000, lockWaitSeconds = 60 } = options
  checkNumber('chunk', chunk, decimal(1, MOST_CHUNK))
  if (!Number.isInteger(chunk)) refuse('chunk', 'it is no whole number')
  checkNumber('lockWaitSeconds', lockWaitSeconds, decimal(0, LONGEST_WAIT_SECONDS))
  return {
    names: nameTable(tableOptions),
    options: tableOptions,
    chunk,
    enforce: options.enforce === true,
    rekeyDuplicates: options.rekeyDuplicates === true,
    dryRun: options.dryRun === true,
    lockWaitMs: lockWaitSeconds * 1_000,
    onStep: options.onStep ?? (() => {}),
    onProgress: options.onProgress ?? (() => {}),
    onWait: options.onWait ?? (() => {}),
    signal: options.signal,
  }
}
