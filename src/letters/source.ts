/** The way back, always of many. A source renders what it would send, or why not, and sends it: inside a transaction, or over a network. */

import type { BartlebyError } from '../core/errors.ts'
import { type Session, sql } from '../store/database.ts'
import { type Before, change, NOBODY } from './change.ts'
import { keepEdits } from './contents.ts'
import type { SourceName } from './kinds.ts'
import {
  type Edit,
  type InDeadQueue,
  isUnconfirmed,
  type Letter,
  type LetterId,
  type LetterStatus,
  type Outgoing,
  RETRIED,
  type RedriveRef,
  type Sending,
  STATUS,
  sentBy,
} from './letter.ts'
import { lockBulkLetters } from './lists/bulk-letters.ts'
import { findLetter, readLetterById } from './lists/detail.ts'
import type { LetterKey } from './shapes.ts'
import { insistOnStatus } from './transitions.ts'
import type { OfficeWork } from './work.ts'

/** A letter without its large columns. */
export interface Departing extends InDeadQueue {
  readonly engine: string
  readonly version: number
  readonly sourceId: string
  /** Where it came from, or where a redrive moves it to. */
  readonly originalQueue: string | null
}

export type Edits = ReadonlyMap<LetterId, Edit>

export const NO_EDITS: Edits = new Map()

/** What would be sent: the stored content with the edit. */
export interface Rendered {
  readonly letter: Departing
  readonly queue: string
  /** Only what can be applied. */
  readonly edit: Edit | null
  readonly content?: Partial<Pick<Outgoing, 'kind' | 'reference' | 'payload' | 'correlationId'>>
}

export interface Refused {
  readonly letter: Departing
  readonly refusal: BartlebyError
}

export interface Sent {
  readonly letter: Departing
  readonly messageId: string
  readonly queue: string
  readonly more?: Readonly<Record<string, string | number>>
}

/** Reads in the act's transaction or, for previews, in short sessions: a source may compute for long in between. */
export type Reading = <T>(verb: string, read: (session: Session) => Promise<T>) => Promise<T>

export interface Restoring extends Departing {
  readonly isUnconfirmed: boolean
  readonly sentTo: string | null
}

/** Nothing of the letter is under way any more. */
export interface TakenBack<Of extends Restoring = Restoring> {
  readonly letter: Of
  readonly deliveries: number
}

export type Move = 'discard' | 'expire' | 'restore' | 'reopen' | 'remove'

/** One per source; all pass the same conformance suite. */
export interface LetterSource {
  readonly name: SourceName
  /** One answer per letter, in order. Writes nothing and throws for no single letter. */
  render(read: Reading, letters: readonly Departing[], edits: Edits): Promise<readonly (Rendered | Refused)[]>
  /**
   * Sends locked letters, in order, inside the caller's transaction: a crash leaves both sides or neither. Edits are already stored;
   * dead queue counts change here, letters are the caller's. Refused: changed since rendering. A source with its messages in another
   * database repairs what a crash leaves between the two.
   */
  send?(work: OfficeWork, rendered: readonly Rendered[]): Promise<readonly (Sent | Refused)[]>
  /**
   * Sends letters over a network, one by one, in transactions of its own: a durable mark before the first byte leaves, then the result.
   * Sent letters are Resolved; nobody knows about one that is refused as uncertain.
   */
  sendOutside?(
    letters: readonly Departing[],
    edits: Edits,
    sending: Sending,
  ): Promise<readonly (Sent | Refused)[]>
  /** Takes back the items of retries before a restore, unless somebody works on them. One answer per letter, in order. */
  takeBack<Of extends Restoring>(
    work: OfficeWork,
    letters: readonly Of[],
  ): Promise<readonly (TakenBack<Of> | Refused)[]>
  /** Reported failures of retried items: each item leaves its queue or, while in work, is cut off from its letter. */
  disown?(work: OfficeWork, letters: readonly LetterId[]): Promise<void>
  /** Finds a letter by the row key that its own source gave it. */
  named?(session: Session, engine: string, rowKey: string): Promise<LetterId | null>
  /** What has to be known of a letter beside its case file, a sentence each: what is under way, or not done yet. Left out: nothing. */
  remarks?(session: Session, letter: Letter): Promise<readonly string[]>
  /**
   * Follows letters on the source's side: discarded and expired ones leave their dead queues, pending ones return, removed ones (some of
   * other sources) are forgotten.
   */
  moved(work: OfficeWork, letters: readonly InDeadQueue[], act: Move): Promise<void>
}

export type OutsideSource = LetterSource & Required<Pick<LetterSource, 'sendOutside'>>

export const isOutside = (source: LetterSource): source is OutsideSource => source.sendOutside !== undefined

export const isRefused = (each: object): each is Refused => 'refusal' in each

export const notRefused = <Done extends object>(answers: readonly (Done | Refused)[]): Done[] =>
  answers.filter((each): each is Done => !isRefused(each))

export type Sources = ReadonlyMap<SourceName, LetterSource>

/** The only look-up of a letter by name: by the office's row key, or by a key of its own source. */
export async function findNamed(
  session: Session,
  sources: Sources,
  { engine, rowKey }: LetterKey,
): Promise<LetterId | null> {
  const own = await findLetter(session, engine, rowKey)
  if (own !== null) return own
  for (const source of sources.values()) {
    const named = await source.named?.(session, engine, rowKey)
    if (named != null) return named
  }
  return null
}

/** Sends locked, pending letters back with their edits and resolves those on their way; refused ones stay unchanged. */
export async function sendBack(
  work: OfficeWork,
  source: Pick<LetterSource, 'name' | 'render' | 'send'>,
  letters: readonly Departing[],
  edits: Edits,
  sending: Sending,
): Promise<readonly (Sent | Refused)[]> {
  if (source.send === undefined)
    throw new Error(`letters of '${source.name}' are not sent within a transaction`)
  if (letters.length === 0) return []
  const rendered = await source.render((_verb, read) => read(work.tx), letters, edits)
  const fit = notRefused(rendered)
  const kept = fit.flatMap(({ letter: { id }, edit }) =>
    edit === null ? [] : [{ id, payload: edit.payload, headers: edit.headers ?? {} }],
  )
  if (kept.length > 0) await keepEdits(work.tx, kept)
  const answers = fit.length === 0 ? [] : await source.send(work, fit)
  const sent = notRefused(answers)
  const refused = answers.filter(isRefused)
  // An edit must not outlive a send that was refused.
  for (const { letter, refusal } of refused) if (edits.has(letter.id)) throw refusal
  const { actor, redrive } = sending
  const notes = sending.notes ?? RETRIED
  const edited = new Set(kept.flatMap(({ id, payload }) => (payload === null ? [] : id)))
  const resolved = sent.map(({ letter: { id, engine }, messageId, queue, more }) => ({
    id,
    engine,
    sentAs: messageId,
    sentTo: queue,
    details: { messageId, queue, ...more, ...sentBy(redrive) },
    isEdited: edited.has(id),
  }))
  await change(work, 'retry', resolved, { notes, actor, redrive })
  return [...sent, ...refused, ...rendered.filter(isRefused)]
}

/** The answer about a single letter; throws its refusal. */
export function onlyOne<Done extends object>(answers: readonly (Done | Refused)[]): Done {
  const [answer] = answers
  if (answer === undefined) throw new Error('a letter was neither sent nor refused')
  if (isRefused(answer)) throw answer.refusal
  return answer
}

export function outgoingOf(letter: Letter, { queue, edit, content }: Rendered): Outgoing {
  const { id, version, encoding, kind, reference, editedHeaders, correlationId } = letter
  return {
    letterId: id,
    queue,
    ...{ encoding, kind, reference, ...editedHeaders, ...edit?.headers },
    payload: edit?.payload ?? letter.editedPayload ?? letter.payload,
    correlationId,
    idempotencyKey: `${id}-${version}`,
    ...content,
  }
}

/** Makes locked letters pending again unless something of them is under way; returns those. */
export async function restoreLetters(
  work: OfficeWork,
  source: LetterSource,
  letters: readonly (Restoring & { readonly before: Before })[],
  how: { readonly actor: string; readonly notes: string | null },
): Promise<readonly Refused[]> {
  const answers = await source.takeBack(work, letters)
  const back = notRefused(answers)
  const restored = back.map(({ letter: { id, engine, before }, deliveries }) => ({
    ...{ id, engine, before, deliveries },
  }))
  if (restored.length > 0) await change(work, 'restore', restored, how)
  const those = back.map(({ letter }) => letter)
  if (those.length > 0) await source.moved(work, those, 'restore')
  return answers.filter(isRefused)
}

/** A change without sending. A retried letter can be restored until somebody works on its item, which is taken back first. */
export interface Change {
  readonly status: LetterStatus
  /** Blank counts as none. */
  readonly notes: string | null
  readonly actor: string
  readonly redrive?: RedriveRef
}

/** Changes the status of a locked letter; returns it as it is then. */
export async function changeLetter(
  work: OfficeWork,
  source: LetterSource,
  letter: Letter,
  { status, notes, actor, redrive }: Change,
): Promise<Letter> {
  const { id, engine } = letter
  const how = { actor, notes: notes?.trim() === '' ? null : notes }
  switch (status) {
    case 'Resolved': {
      insistOnStatus(letter, 'discard')
      await source.moved(work, [letter], 'discard')
      const details = redrive === undefined ? {} : { details: sentBy(redrive) }
      await change(work, 'discard', [{ id, engine, ...details }], { ...how, redrive })
      break
    }
    case 'Expired':
      insistOnStatus(letter, 'expire')
      await source.moved(work, [letter], 'expire')
      await change(work, 'expire', [{ id, engine }], how)
      break
    case 'Pending': {
      insistOnStatus(letter, 'restore')
      const before = { ...letter, status: STATUS[letter.status] }
      const restoring = { ...letter, before, isUnconfirmed: isUnconfirmed(letter) }
      const [refused] = await restoreLetters(work, source, [restoring], how)
      if (refused !== undefined) throw refused.refusal
    }
  }
  const changed = await readLetterById(work.tx, id)
  if (changed === null) throw new Error(`letter ${id} is gone although it was locked`)
  return changed
}

/** A letter of this version did not leave for its redrive after all. Does nothing if the letter changed since. */
export async function forgoRedrive(
  work: OfficeWork,
  id: LetterId,
  version: number,
  redrive: Pick<RedriveRef, 'number'>,
): Promise<void> {
  const letter = (await lockBulkLetters(work.tx, [id])).get(id)
  const isSame = letter?.version === version && letter.redrive === redrive.number
  if (letter !== undefined && isSame) await change(work, 'forgo', [letter], NOBODY)
}

const AFTER = 'letter_id = $1 AND correlation_id IS NOT NULL AND letter_version > $2'

/** On history_of_letter. */
const findSend = sql(
  'letters.sentForRedrive',
  `SELECT 1 AS sent FROM bartleby.history WHERE ${AFTER} AND position(convert_to($3, 'UTF8') IN output) > 0 LIMIT 1`,
)

/** Whether history has a send for this redrive after the given version. */
export async function wasSentFor(
  session: Session,
  letter: LetterId,
  version: number,
  { id }: Pick<RedriveRef, 'id'>,
): Promise<boolean> {
  return (await session.rows(findSend, letter, version, `"redrive":"${id}"`)).length > 0
}
