/**
 * Retry: the letter is claimed, its source sends it back, and it is Resolved until its item completes (confirmed) or
 * dies (reopened). Claim, send and books are one transaction: of any number of equal calls one finds it Pending.
 */
import { sql } from '../db/database.ts'
import {
  type Edit,
  ITEM_HEADERS,
  type Letter,
  type LocalLetterSource,
  type Outgoing,
  RETRIED,
  type RedriveRef,
  type Retry,
  type SendReceipt,
} from './letter.ts'
import { insistOnStatus, transition } from './transition.ts'
import type { OfficeWork } from './work.ts'

/** Keeps what the operator made of the payload beside the original. One row by primary key. */
const keepPayload = sql(
  'letters.keepEdit',
  'UPDATE bartleby.letters SET edited = 1, edited_payload = $2 WHERE id = $1',
)
/** The same of the headers; what is not given stays. */
const keepHeaders = sql(
  'letters.keepHeaders',
  `UPDATE bartleby.letters SET edited_encoding = coalesce($2, edited_encoding), edited_kind = coalesce($3, edited_kind),
     edited_reference = coalesce($4, edited_reference) WHERE id = $1`,
)

/** Sends a locked letter back to where it came from. */
export async function retryLetter(
  work: OfficeWork,
  source: LocalLetterSource,
  letter: Letter,
  { edit, notes, actor, redrive }: Retry,
): Promise<SendReceipt> {
  const outgoing = await renderRetry(work, source, letter, edit)
  if (edit !== null) await keepEdit(work, letter, edit)
  await source.lift(work, [letter], 'retry')
  const receipt = await source.send(work, outgoing, letter)
  await transition(
    work,
    letter,
    {
      status: 'Resolved',
      resolution: 'retry',
      resolvedAt: work.now,
      resolvedBy: actor,
      notes: notes ?? RETRIED,
      sentAs: receipt.messageId,
      sentTo: receipt.queue,
      redrive: redrive?.number,
    },
    {
      act: 'retry',
      actor,
      notes: notes ?? RETRIED,
      input: edit?.payload ?? null,
      output: Buffer.from(JSON.stringify({ ...receipt, ...sentBy(redrive) })),
    },
  )
  return receipt
}

/** How the history of a letter names the redrive that sent it. */
export const sentBy = (redrive: RedriveRef | undefined) =>
  redrive === undefined
    ? {}
    : { redrive: redrive.id, ...(redrive.recipe === null ? {} : { recipe: redrive.recipe }) }

async function keepEdit({ tx }: OfficeWork, { id }: Letter, { payload, headers }: Edit): Promise<void> {
  if (payload !== null) await tx.run(keepPayload, id, payload)
  if (headers === undefined) return
  const given = ITEM_HEADERS.map((name) => {
    const text = headers[name]
    return text === undefined ? null : Buffer.from(text)
  })
  if (given.some((text) => text !== null)) await tx.run(keepHeaders, id, ...given)
}

/** What a retry would send now, or why it would be refused. Writes nothing. */
export async function renderRetry(
  work: Pick<OfficeWork, 'tx'>,
  source: LocalLetterSource,
  letter: Letter,
  edit: Edit | null,
): Promise<Outgoing> {
  insistOnStatus(letter, 'retry', ['Pending'])
  return source.render(work.tx, letter, edit)
}
