/** What adoption needs of a kind of database. */
import type { Dialect } from '../../db/database.ts'
import type { RunSql } from '../layout.ts'
import type { Step } from './plan.ts'
import type { Findings } from './report.ts'
import type { Target } from './target.ts'

/** One database, opened to adopt a table in it. */
export interface Ground {
  readonly dialect: Dialect
  readonly run: RunSql
  /** Makes sure that no other adoption of the table runs. */
  begin(): Promise<void>
  /** Makes the table, where there is none. */
  create(): Step
  /** What a table that exists needs; refuses one that cannot be adopted here. */
  plan(target: Target, findings: Findings): Promise<readonly Step[]>
  close(): Promise<void>
}
