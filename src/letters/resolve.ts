/**
 * Retry: the letter is claimed, its source sends it back, and it is Resolved until its item completes (confirmed) or
 * dies (reopened). Claim, send and books are one transaction: of any number of equal calls one finds it Pending.
 */
import { sql } from '../db/database.ts'
import {
  type Edit,
  type Letter,
  type LocalLetterSource,
  type Outgoing,
  RETRIED,
  type Retry,
  type SendReceipt,
} from './letter.ts'
import { insistOnStatus, transition } from './transition.ts'
import type { OfficeWork } from './work.ts'

/** Keeps what the operator made of the payload beside the original. One row by primary key. */
const keepEdit = sql(
  'letters.keepEdit',
  'UPDATE bartleby.letters SET edited = 1, edited_payload = $2 WHERE id = $1',
)

/** Sends a locked letter back to where it came from. */
export async function retryLetter(
  work: OfficeWork,
  source: LocalLetterSource,
  letter: Letter,
  { edit, notes, actor }: Retry,
): Promise<SendReceipt> {
  const outgoing = await renderRetry(work, source, letter, edit)
  if (edit !== null) await work.tx.run(keepEdit, letter.id, edit.payload)
  await source.lift(work, [letter], 'retry')
  const receipt = await source.send(work, outgoing)
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
    },
    {
      act: 'retry',
      actor,
      notes: notes ?? RETRIED,
      input: edit?.payload ?? null,
      output: Buffer.from(JSON.stringify(receipt)),
    },
  )
  return receipt
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
