/**
 * The way back of webhook letters: the job is still there and starts over. A pending letter has a dead job; discarded or expired, the job
 * is gone; restored, it is dead again. Nothing can be edited: each consumer gets what was broadcast.
 */
import { type Instant, instant } from '../../../core/clock.ts'
import { BartlebyError, failure } from '../../../core/errors.ts'
import { readContents } from '../../../letters/contents.ts'
import { type Erasure, eraseLetters } from '../../../letters/erase.ts'
import { type LetterId, letterId, type Sending, STATUS } from '../../../letters/letter.ts'
import { lockBulkLetters } from '../../../letters/lists/bulk-letters.ts'
import { lockLetters } from '../../../letters/locked.ts'
import {
  type Departing,
  type Edits,
  type LetterSource,
  NO_EDITS,
  notRefused,
  type Reading,
  type Refused,
  type Rendered,
  type Restoring,
  type Sent,
  sendBack,
  type TakenBack,
} from '../../../letters/source.ts'
import type { OfficeWork } from '../../../letters/work.ts'
import { type Integer, type Session, sql } from '../../../store/database.ts'
import { CountChanges } from '../numbers/counts.ts'
import type { Parts } from '../settings.ts'
import { IS_DEAD, JOB, WEBHOOKS } from '../webhook.ts'
import { attemptsBefore } from './bury.ts'
import { restoreJobs } from './restore-jobs.ts'

/** Sends the pending letters of one consumer back. Returns those that left. */
export async function requeueJobs(
  work: OfficeWork,
  source: Pick<LetterSource, 'name' | 'render' | 'send'>,
  { queue, letters, ...sending }: Sending & { readonly queue: string; readonly letters: readonly LetterId[] },
): Promise<readonly Sent[]> {
  const locked = await lockBulkLetters(work.tx, letters)
  const pending = letters.flatMap((id) => {
    const letter = locked.get(id)
    return letter?.status === STATUS.Pending ? [{ ...letter, originalQueue: queue }] : []
  })
  return notRefused(await sendBack(work, source, pending, NO_EDITS, sending))
}

/** By primary keys. */
const removeOfLetters = sql(
  'webhooks.removeOfLetters',
  `DELETE FROM bartleby.webhook_jobs WHERE ${IS_DEAD} AND id IN (
     SELECT source_id FROM bartleby.letters WHERE letters.id = ANY($1::bigint[]))`,
)

export const webhookLetterSource = ({ onJobs }: Pick<Parts, 'onJobs'>): LetterSource => ({
  name: WEBHOOKS,
  render: renderJobs,
  send: (work, rendered) => send(work, rendered, onJobs),
  takeBack,
  async moved(work, letters, act) {
    const ids = letters.map(({ id }) => id)
    if (act === 'discard' || act === 'expire') await work.tx.run(removeOfLetters, ids)
    if (act !== 'reopen') return
    const restored = await restoreJobs(work, ids)
    for (const id of ids) {
      const answer = restored.get(id)
      if (answer instanceof BartlebyError) throw answer
    }
  },
})

/** By primary key, if the message is there. */
const readFit = sql(
  'webhooks.fitJobs',
  `
    SELECT id FROM bartleby.webhook_jobs AS job WHERE id = ANY($1::text[]) AND ${IS_DEAD}
      AND (SELECT message.id FROM bartleby.webhook_messages AS message WHERE message.id = job.message) IS NOT NULL`,
)

const idsOf = (letters: readonly Departing[]): string[] => letters.map(({ sourceId }) => sourceId).sort()

export const renderJobs = (read: Reading, letters: readonly Departing[], edits: Edits) =>
  read('webhooks.render', async (session) => {
    const fit = await session.rows<{ id: string }>(readFit, idsOf(letters))
    const ids = new Set(fit.map(({ id }) => id))
    const edited = await editedOf(session, letters, edits)
    return letters.map((letter): Rendered | Refused => {
      // A consumer is not deleted while it has jobs.
      if (!ids.has(letter.sourceId)) return jobGone(letter)
      if (edited.has(letter.id)) return { letter, refusal: failure('parameter_invalid', AS_BROADCAST) }
      return { letter, queue: letter.originalQueue ?? '', edit: null }
    })
  })

const AS_BROADCAST = {
  parameter: 'payload',
  reason: 'a webhook job is delivered as it was broadcast; broadcast the corrected message anew',
} as const

async function editedOf(
  session: Session,
  letters: readonly Departing[],
  edits: Edits,
): Promise<ReadonlySet<LetterId>> {
  const given = letters.filter(({ id }) => edits.get(id)?.payload != null).map(({ id }) => id)
  if (given.length === 0) return new Set()
  const contents = await readContents(session, given)
  const isSame = (id: LetterId): boolean =>
    Buffer.from(edits.get(id)?.payload ?? '').equals(contents.get(id)?.payload ?? Buffer.alloc(0))
  return new Set(given.filter((id) => !isSame(id)))
}

/** By primary key, for a full new round. Locks them. */
const startOver = sql(
  'webhooks.startOver',
  `
    UPDATE bartleby.webhook_jobs
    SET state = ${JOB.ready}, attempts = 0, exhausted = 0, changed_at = $2, due_at = NULL, claim = NULL
    WHERE id = ANY($1::text[]) AND ${IS_DEAD}
    RETURNING id, consumer, (SELECT pulls FROM bartleby.webhook_consumers AS target WHERE target.number = consumer) AS pulls`,
)

async function send(
  work: OfficeWork,
  rendered: readonly Rendered[],
  onJobs: Parts['onJobs'],
): Promise<readonly (Sent | Refused)[]> {
  const { tx, now } = work
  const letters = rendered.map(({ letter }) => letter)
  const rows = await tx.rows<{ id: string; consumer: Integer; pulls: Integer }>(
    startOver,
    idsOf(letters),
    now,
  )
  const counts = new CountChanges()
  for (const { consumer } of rows) counts.moved(Number(consumer), JOB.dead, JOB.ready)
  counts.write(tx)
  const pushed = new Set(
    rows.filter(({ pulls }) => Number(pulls) === 0).map(({ consumer }) => Number(consumer)),
  )
  if (pushed.size > 0) work.afterCommit(() => onJobs(pushed))
  const started = new Set(rows.map(({ id }) => id))
  return rendered.map(({ letter, queue }) =>
    started.has(letter.sourceId) ? { letter, messageId: letter.sourceId, queue } : jobGone(letter),
  )
}

export const jobGone = (letter: Departing): Refused => ({
  letter,
  refusal: failure('letter_job_gone', { id: letter.sourceId }),
})

async function takeBack<Of extends Restoring>(
  work: OfficeWork,
  letters: readonly Of[],
): Promise<readonly (TakenBack<Of> | Refused)[]> {
  const sent = letters.filter(({ isUnconfirmed }) => isUnconfirmed).map(({ id }) => id)
  const before = await attemptsBefore(work.tx, sent)
  const ids = letters.map(({ id }) => id)
  const restored = await restoreJobs(work, ids)
  return letters.map((letter) => {
    const attempts = restored.get(letter.id) ?? null
    if (attempts instanceof BartlebyError) return { letter, refusal: attempts }
    const isOurs = letter.isUnconfirmed && attempts !== null
    return { letter, deliveries: isOurs ? attempts - (before.get(letter.id) ?? 0) : 0 }
  })
}

/** By primary key; used up at its death, or by `$2`, the most retries. */
const removeExhausted = sql(
  'webhooks.removeExhausted',
  `
    DELETE FROM bartleby.webhook_jobs WHERE id = ANY($1::text[]) AND ${IS_DEAD}
      AND (exhausted = 1 OR attempts >= $2) RETURNING letter, changed_at`,
  { bigints: true },
)

/** Erases dead jobs without attempts left, with their letters. */
export async function eraseJobs(
  work: OfficeWork,
  jobs: readonly { readonly id: string; readonly letter: LetterId | null }[],
  maxRetry: number,
  erasure: Omit<Erasure, 'engine' | 'letters' | 'pendingSince'>,
): Promise<number> {
  if (jobs.length === 0) return 0
  const { tx } = work
  const ids = jobs.map(({ id }) => id).sort()
  // Letters before jobs. Statements run in order: the second need not wait for the first's answer.
  const [, removed] = await Promise.all([
    lockLetters(
      tx,
      jobs.flatMap(({ letter }) => letter ?? []),
    ),
    tx.rows<{ letter: Integer; changed_at: Integer }>(removeExhausted, ids, maxRetry),
  ])
  const diedAt = removed.map((row) => BigInt(row.changed_at))
  await eraseLetters(work, {
    ...erasure,
    engine: WEBHOOKS,
    letters: removed.map(({ letter }) => letterId(letter)),
    pendingSince: latest(diedAt),
  })
  return removed.length
}

const latest = (times: readonly bigint[]): Instant =>
  instant(times.reduce((newest, at) => (at > newest ? at : newest), 0n))
