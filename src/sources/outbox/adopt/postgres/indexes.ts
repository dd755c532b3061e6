/** The catalogue's facts about a table, and its indexes, built while others write. */
import { refuse } from '../../refusal.ts'
import type { RunSql } from '../../table/layout.ts'
import { type IndexDefinition, indexStatement } from '../../table/schema.ts'
import { quote, type TableNames } from '../../table/table-names.ts'
import { findDuplicates, indexSteps } from '../indexes.ts'
import type { Adoption, Step } from '../report.ts'
import { noIdIndex } from '../target.ts'
import { type AdoptSession, codeOf } from './session.ts'

const UNIQUE_VIOLATION = '23505'

export interface PostgresAdoption extends Adoption {
  readonly session: AdoptSession
  readonly facts: TableFacts
}

export const postgresIndexSteps = (adoption: PostgresAdoption): readonly Step[] =>
  indexSteps(adoption, hasUnique(adoption), (index) => indexStep(adoption, index))

/** Under whatever name. */
function hasUnique({ layout, facts }: PostgresAdoption): boolean {
  const wanted = [layout.columns.tenantId, layout.columns.idempotencyKey].sort().join('\0')
  return facts.indexes.some(
    ({ valid, decides, columns }) => valid && decides && [...columns].sort().join('\0') === wanted,
  )
}

function indexStep({ session, layout, facts, findings }: PostgresAdoption, index: IndexDefinition): Step {
  const left = facts.indexes.find(({ name }) => name === index.name)
  const create = indexStatement(layout, index, { concurrently: true })
  const drop = `DROP INDEX CONCURRENTLY IF EXISTS ${quote(facts.schema)}.${quote(index.name)}`
  // A killed adoption leaves an index that is maintained and never used: it is built anew.
  const statements = left?.valid === false ? [drop, create] : [create]
  return {
    what: `build the index ${index.name} while others write`,
    sql: `${statements.join(';\n')};`,
    needed: () => left?.valid !== true,
    async run() {
      try {
        for (const statement of statements) await session.build(statement, `building ${index.name}`)
        return 'done'
      } catch (error) {
        // A duplicate came after they were looked for.
        if (codeOf(error) !== UNIQUE_VIOLATION) throw error
        await session.build(drop, `removing ${index.name}`)
        findings.duplicates = await findDuplicates(layout, session.run)
        findings.duplicatesLeft = true
        return 'skipped'
      }
    },
  }
}

/** Dispatchers find rows by id. */
export function noteMissingIdIndex({ layout, facts, findings }: PostgresAdoption): void {
  const { id } = layout.columns
  const found = facts.indexes.some(
    ({ valid, decides, columns }) => valid && decides && columns.length === 1 && columns[0] === id,
  )
  if (!found) findings.notes.push(noIdIndex(layout, 'CREATE UNIQUE INDEX CONCURRENTLY'))
}

export interface TableFacts {
  readonly schema: string
  readonly settings: ReadonlySet<string>
  readonly columns: ReadonlyMap<string, { readonly notNull: boolean; readonly hasDefault: boolean }>
  readonly indexes: readonly IndexFacts[]
  /** By name, and whether all rows are known to satisfy it. */
  readonly constraints: ReadonlyMap<string, boolean>
}

interface IndexFacts {
  readonly name: string
  /** False while it is built, or after that was given up. */
  readonly valid: boolean
  /** Unique on all rows, at once, on columns alone: it can tell writers that a message is there already. */
  readonly decides: boolean
  readonly columns: readonly string[]
}

const KINDS: Readonly<Record<string, string>> = {
  p: 'a partitioned table, whose indexes cannot be built while others write',
  v: 'a view',
  m: 'a materialized view',
  f: 'a foreign table',
}

/** Refuses what is no plain table. */
export async function readFacts(names: TableNames, run: RunSql): Promise<TableFacts> {
  const [table] = await run(
    `SELECT n.nspname AS schema, c.relkind AS kind,
       ARRAY(SELECT split_part(setting, '=', 1) FROM unnest(c.reloptions) AS setting) AS settings
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)`,
    [names.sqlTable],
  )
  const kind = String(table?.kind)
  if (kind !== 'r') refuse('table', `'${names.table}' is ${KINDS[kind] ?? 'no table'}`)
  const columns = await run(
    `SELECT attname AS name, attnotnull AS "notNull", atthasdef AS "hasDefault" FROM pg_attribute
     WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`,
    [names.sqlTable],
  )
  const constraints = await run(
    'SELECT conname AS name, convalidated AS valid FROM pg_constraint WHERE conrelid = to_regclass($1)',
    [names.sqlTable],
  )
  return {
    schema: String(table?.schema),
    settings: new Set(textsOf(table?.settings)),
    columns: new Map(
      columns.map(({ name, notNull, hasDefault }) => [
        String(name),
        { notNull: notNull === true, hasDefault: hasDefault === true },
      ]),
    ),
    indexes: await readIndexes(names, run),
    constraints: new Map(constraints.map(({ name, valid }) => [String(name), valid === true])),
  }
}

async function readIndexes(names: TableNames, run: RunSql): Promise<readonly IndexFacts[]> {
  const rows = await run(
    `SELECT c.relname AS name, x.indisvalid AND x.indisready AND x.indislive AS valid,
       x.indisunique AND x.indimmediate AND x.indpred IS NULL AND x.indexprs IS NULL AS decides,
       ARRAY(SELECT a.attname::text FROM unnest(x.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
         JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.attnum
         WHERE k.place <= x.indnkeyatts ORDER BY k.place) AS columns
     FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid WHERE x.indrelid = to_regclass($1)`,
    [names.sqlTable],
  )
  return rows.map(({ name, valid, decides, columns }) => ({
    name: String(name),
    valid: valid === true,
    decides: decides === true,
    columns: textsOf(columns),
  }))
}

/** An index of that name on another table would keep ours from being made. */
export async function refuseForeignNamesakes(
  facts: TableFacts,
  indexes: readonly string[],
  run: RunSql,
): Promise<void> {
  const own = facts.indexes.map(({ name }) => name)
  const others = indexes.filter((name) => !own.includes(name))
  const [namesake] = await run(
    `SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = $1 AND c.relname = ANY($2::text[]) LIMIT 1`,
    [facts.schema, others],
  )
  if (namesake === undefined) return
  const name = quote(String(namesake.name))
  refuse('table', `its index would be called ${name}, and something else in the schema is; rename that first`)
}

const textsOf = (list: unknown): string[] => (Array.isArray(list) ? list.map(String) : [])
