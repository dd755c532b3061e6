/** Adapters of libraries that talk to several databases have to be told which. */
import { failure } from '../../core/errors.ts'
import type { Dialect } from '../../db/database.ts'

const DIALECTS: readonly string[] = ['postgres', 'sqlite'] satisfies Dialect[]

/** Refuses what is no database of an outbox. */
export function checkDialect(dialect: unknown, option = 'dialect'): void {
  if (typeof dialect !== 'string' || !DIALECTS.includes(dialect)) {
    const reason = `${typeof dialect === 'string' ? `'${dialect}'` : String(dialect)} is none of ${DIALECTS.join(', ')}`
    throw failure('outbox_option_invalid', { option, reason })
  }
}
