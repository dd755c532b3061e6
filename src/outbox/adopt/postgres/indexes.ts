/** The indexes of an adopted PostgreSQL table, built while others write. */
import type { Layout } from '../../layout.ts'
import { type IndexDefinition, indexesOf, indexStatement } from '../../schema.ts'
import { quote } from '../../table-names.ts'
import { findDuplicates, rekeyStep } from '../duplicates.ts'
import type { Step } from '../plan.ts'
import type { AdoptSettings, Findings, StepOutcome } from '../report.ts'
import { noIdIndex } from '../target.ts'
import type { IndexFacts, TableFacts } from './catalog.ts'
import { type AdoptSession, codeOf } from './session.ts'

const UNIQUE_VIOLATION = '23505'

export interface IndexWork {
  readonly session: AdoptSession
  readonly layout: Layout
  readonly facts: TableFacts
  readonly settings: AdoptSettings
  readonly findings: Findings
}

/** A step for each index that the table should have, and one for the duplicates in the way of the first. */
export function indexSteps(work: IndexWork): readonly Step[] {
  const { session, layout, facts, settings, findings } = work
  // A dry run cannot look at keys whose column is still missing.
  const hasKeys = !settings.dryRun || facts.columns.has(layout.columns.idempotencyKey)
  const looking = hasKeys && !hasUnique(layout, facts.indexes)
  const change = (sql: string) => session.change(sql)
  return indexesOf(layout, 'postgres').flatMap((index) =>
    index.unique
      ? [rekeyStep(layout, session.run, change, looking, settings, findings), uniqueStep(work, index)]
      : [indexStep(work, index)],
  )
}

/** Whether an index, under whatever name, keeps a tenant from having a key twice. */
function hasUnique(layout: Layout, indexes: readonly IndexFacts[]): boolean {
  const wanted = [layout.columns.tenantId, layout.columns.idempotencyKey].sort().join('\0')
  return indexes.some(
    ({ valid, decides, columns }) => valid && decides && [...columns].sort().join('\0') === wanted,
  )
}

const namedLike = (facts: readonly IndexFacts[], { name }: IndexDefinition) =>
  facts.find((each) => each.name === name)

/** A killed adoption leaves an index that is kept up to date and never used: it is built anew. */
function statementsFor({ layout, facts }: IndexWork, index: IndexDefinition): readonly string[] {
  const left = namedLike(facts.indexes, index)
  const create = indexStatement(layout, index, { concurrently: true })
  return left !== undefined && !left.valid ? [dropStatement(facts, index), create] : [create]
}

const dropStatement = ({ schema }: TableFacts, { name }: IndexDefinition): string =>
  `DROP INDEX CONCURRENTLY IF EXISTS ${quote(schema)}.${quote(name)}`

function indexStep(work: IndexWork, index: IndexDefinition): Step {
  const statements = statementsFor(work, index)
  return {
    what: `build the index ${index.name} while others write`,
    sql: `${statements.join(';\n')};`,
    needed: () => namedLike(work.facts.indexes, index)?.valid !== true,
    async run() {
      for (const statement of statements) await work.session.build(statement, `building ${index.name}`)
      return 'done'
    },
  }
}

function uniqueStep(work: IndexWork, index: IndexDefinition): Step {
  const { session, layout, facts, findings } = work
  const plain = indexStep(work, index)
  return {
    ...plain,
    needed: () => !hasUnique(layout, facts.indexes),
    async run(): Promise<StepOutcome> {
      if (findings.duplicatesLeft) return 'skipped'
      try {
        return await plain.run()
      } catch (error) {
        // Somebody made a duplicate after they were looked for.
        if (codeOf(error) !== UNIQUE_VIOLATION) throw error
        await session.build(dropStatement(facts, index), `removing ${index.name}`)
        findings.duplicates = await findDuplicates(layout, session.run)
        findings.duplicatesLeft = true
        return 'skipped'
      }
    },
  }
}

/** A dispatcher finds its rows by their ids: notes when those have no index. */
export function noteMissingIdIndex({ layout, facts, findings }: IndexWork): void {
  const { id } = layout.columns
  const found = facts.indexes.some(
    ({ valid, decides, columns }) => valid && decides && columns.length === 1 && columns[0] === id,
  )
  if (!found) findings.notes.push(noIdIndex(layout, 'CREATE UNIQUE INDEX CONCURRENTLY'))
}
