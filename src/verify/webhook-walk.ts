/** Walks over what belongs to webhooks in steps of bounded size, along keys that are texts. */
import { type Integer, type Session, type Statement, sql } from '../db/database.ts'
import { WEBHOOKS } from '../webhooks/webhook.ts'

/** What a walk needs of an audit. */
export interface Walker {
  readonly session: Session
  looked(rows: number): Promise<void>
}

/** Keys above `after`, up to and with `through`. */
export interface TextRange {
  readonly after: string
  readonly through: string
}

const STEP = 5_000

const endOfRange = (name: string, table: string, key: string, condition = ''): Statement =>
  sql(
    name,
    `SELECT max(${key}) AS through, count(*) AS found
     FROM (SELECT ${key} FROM ${table} WHERE ${condition} ${key} > $1 ORDER BY ${key} LIMIT $2) AS step`,
  )

/** Jobs by their primary key. */
const jobStep = endOfRange('verify.jobStep', 'bartleby.webhook_jobs', 'id')
/** Messages by their primary key. */
const messageStep = endOfRange('verify.messageStep', 'bartleby.webhook_messages', 'id')
/** Letters of jobs, on their unique index. */
const letterStep = endOfRange(
  'verify.jobLetterStep',
  'bartleby.letters',
  'source_id',
  `engine = '${WEBHOOKS}' AND`,
)

export const jobRanges = (walker: Walker) => ranges(walker, jobStep)
export const messageRanges = (walker: Walker) => ranges(walker, messageStep)
/** Ranges of the jobs' ids that letters of webhooks have. */
export const jobLetterRanges = (walker: Walker) => ranges(walker, letterStep)

async function* ranges({ session, looked }: Walker, step: Statement): AsyncGenerator<TextRange> {
  for (let after = ''; ; ) {
    const [end] = await session.rows<{ through: string | null; found: Integer }>(step, after, STEP)
    if (end?.through == null) return
    yield { after, through: end.through }
    await looked(Number(end.found))
    after = end.through
  }
}
