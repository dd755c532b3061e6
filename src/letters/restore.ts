/**
 * What an operator makes of a letter without sending it: discard and expire it, and restore it from either. A letter
 * that was retried can be restored until its item is being worked on: the item is taken back first.
 */
import { failure } from '../core/errors.ts'
import { sql } from '../db/database.ts'
import type { Letter, LetterStatus } from './letter.ts'
import type { LetterSource } from './source.ts'
import { insistOnStatus, type Outcome, transition } from './transition.ts'
import type { OfficeWork } from './work.ts'

export interface Change {
  readonly status: LetterStatus
  /** Blank ones are none. */
  readonly notes: string | null
  readonly actor: string
}

/** Gives a locked letter another status; gives the letter as it is then. */
export async function changeLetter(
  work: OfficeWork,
  source: LetterSource,
  letter: Letter,
  { status, notes, actor }: Change,
): Promise<Letter> {
  const change = { status, notes: notes?.trim() === '' ? null : notes, actor }
  switch (status) {
    case 'Resolved':
      return discard(work, source, letter, change)
    case 'Expired':
      return expire(work, source, letter, change)
    case 'Pending':
      return restore(work, source, letter, change)
  }
}

async function discard(work: OfficeWork, source: LetterSource, letter: Letter, { notes, actor }: Change) {
  insistOnStatus(letter, 'discard', ['Pending'])
  await source.lift(work, [letter], 'discard')
  const outcome: Outcome = {
    ...UNRESOLVED,
    status: 'Resolved',
    resolution: 'discard',
    resolvedAt: work.now,
    resolvedBy: actor,
    notes,
  }
  const operation = source.operations?.discard
  return lifted(await transition(work, letter, outcome, { act: 'discard', operation, actor, notes }))
}

/** An expired letter was given up, not resolved: it has a time of expiry, and none of resolution. */
async function expire(work: OfficeWork, source: LetterSource, letter: Letter, { notes, actor }: Change) {
  insistOnStatus(letter, 'expire', ['Pending'])
  await source.lift(work, [letter], 'expire')
  const outcome: Outcome = {
    ...UNRESOLVED,
    status: 'Expired',
    resolution: 'expire',
    resolvedBy: actor,
    notes,
  }
  return lifted(await transition(work, letter, outcome, { act: 'expire', actor, notes }))
}

async function restore(work: OfficeWork, source: LetterSource, letter: Letter, { notes, actor }: Change) {
  insistOnStatus(letter, 'restore', ['Resolved', 'Expired'])
  let deliveries = 0
  if (letter.resolution === 'retry' && letter.confirmedAt === null) {
    const recall = await source.recall(work, letter)
    if (recall.outcome === 'running') throw failure('letter_in_flight', { queue: letter.sentTo ?? '' })
    if (recall.outcome === 'recalled') deliveries = recall.attempts
  }
  if (deliveries > 0) await work.tx.run(addDeliveries, letter.id, deliveries)
  await source.lay(work, [letter])
  const counted = { ...letter, dequeueCount: letter.dequeueCount + deliveries }
  return transition(work, counted, { ...UNRESOLVED, status: 'Pending' }, { act: 'restore', actor, notes })
}

/** The deliveries of an item that was taken back belong to its letter. One row by primary key. */
const addDeliveries = sql(
  'letters.addDeliveries',
  'UPDATE bartleby.letters SET dequeue_count = dequeue_count + $2 WHERE id = $1',
)

const UNRESOLVED: Omit<Outcome, 'status'> = {
  resolution: null,
  resolvedAt: null,
  resolvedBy: null,
  notes: null,
  sentAs: null,
  sentTo: null,
}

const lifted = (letter: Letter): Letter => ({ ...letter, place: null })
