/**
 * The way back, always of many; one letter is a list of one. A source says what it would send, or why not, and sends it: inside the
 * transaction of the act, or outside of any when its messages leave over a network.
 */

import type { BartlebyError } from '../core/errors.ts'
import { type Session, sql } from '../store/database.ts'
import { type Before, change, NOBODY } from './change.ts'
import { keepEdits } from './contents.ts'
import type { SourceName } from './kinds.ts'
import {
  type Edit,
  isUnconfirmed,
  type Letter,
  type LetterId,
  type LetterStatus,
  type Outgoing,
  type Placed,
  RETRIED,
  type RedriveRef,
  type Sending,
  STATUS,
  sentBy,
} from './letter.ts'
import { lockCandidates } from './lists/candidates.ts'
import { readLetterById } from './lists/detail.ts'
import { insistOnStatus } from './transitions.ts'
import type { OfficeWork } from './work.ts'

/** A letter as its source knows it: nothing of what is large. */
export interface Departing extends Placed {
  readonly engine: string
  readonly version: number
  readonly sourceId: string
  /** Where it goes: where it came from, or where a redrive moves it to. */
  readonly originalQueue: string | null
}

/** What is changed of letters before they leave. */
export type Edits = ReadonlyMap<LetterId, Edit>

export const NO_EDITS: Edits = new Map()

/** What would be sent of a letter: its content as it is on file, with the edit. */
export interface Rendered {
  readonly letter: Departing
  readonly queue: string
  /** As far as it can be applied. */
  readonly edit: Edit | null
  /** What the source makes of the content; left out: nothing. */
  readonly content?: Partial<Pick<Outgoing, 'kind' | 'reference' | 'payload' | 'correlationId'>>
}

/** A letter that has no way back, now or ever. */
export interface Refused {
  readonly letter: Departing
  readonly refusal: BartlebyError
}

/** A letter on its way. */
export interface Sent {
  readonly letter: Departing
  readonly messageId: string
  readonly queue: string
  /** What history says of it besides; left out: nothing. */
  readonly more?: Readonly<Record<string, string | number>>
}

/** Reads in the transaction of the act or, for a preview, in a session for each: a source may think for long between them. */
export type Reading = <T>(verb: string, read: (session: Session) => Promise<T>) => Promise<T>

/** A resolved or expired letter that shall be pending again. */
export interface Restoring extends Departing {
  /** Whether a retry sent it and nothing was heard of it yet. */
  readonly isUnconfirmed: boolean
  readonly sentTo: string | null
}

/** Nothing of a letter is under way any more. */
export interface TakenBack<Of extends Restoring = Restoring> {
  readonly letter: Of
  /** How often what its retry made had been delivered. */
  readonly deliveries: number
}

/** What happens to letters that their source has to follow with its own side of them. */
export type Move = 'discard' | 'expire' | 'restore' | 'reopen' | 'remove'

/** One for each source, all of them passing the same conformance suite. */
export interface LetterSource {
  readonly name: SourceName
  /** One answer for each letter, in their order. Writes nothing, and throws for no single letter. */
  render(read: Reading, letters: readonly Departing[], edits: Edits): Promise<readonly (Rendered | Refused)[]>
  /**
   * Sends letters, in their order, in the transaction in which they were locked and rendered: a crash leaves both or neither. The
   * edits are on file. Their dead queues lose them in the counts; the caller writes the letters. Refused is what has changed since
   * it was rendered. A source whose messages lie in another database must put right what a crash leaves between the two.
   */
  send?(work: OfficeWork, rendered: readonly Rendered[]): Promise<readonly (Sent | Refused)[]>
  /**
   * Sends letters over a network, one after the other, in transactions of its own: a durable mark before the first byte leaves, and
   * what came of it. The letters that it gives as sent are Resolved; of one that is refused as uncertain nobody knows.
   */
  sendOutside?(
    letters: readonly Departing[],
    edits: Edits,
    sending: Sending,
  ): Promise<readonly (Sent | Refused)[]>
  /**
   * Takes back what retries made, before letters are restored, unless somebody is working on it: one answer for each letter, in
   * their order. Nothing is written of one that is refused.
   */
  takeBack<Of extends Restoring>(
    work: OfficeWork,
    letters: readonly Of[],
  ): Promise<readonly (TakenBack<Of> | Refused)[]>
  /**
   * Items of retries failed, says somebody who reports it: each is taken out of its queue or, while somebody works on it, cut off
   * from its letter. Left out: nobody but the source itself tells of such failures.
   */
  disown?(work: OfficeWork, letters: readonly LetterId[]): Promise<void>
  /** The letter that has this row key where it came from. Left out: its letters have none but the office's. */
  named?(session: Session, engine: string, rowKey: string): Promise<LetterId | null>
  /**
   * Letters that are discarded or expire leave their dead queues, or their messages are given up; those that are pending again, by a
   * restoration or another failure, lie where they belong; those that are removed are forgotten, and some of them may be another
   * source's.
   */
  moved(work: OfficeWork, letters: readonly Placed[], act: Move): Promise<void>
}

/** A source whose letters leave over a network. */
export type OutsideSource = LetterSource & Required<Pick<LetterSource, 'sendOutside'>>

export const isOutside = (source: LetterSource): source is OutsideSource => source.sendOutside !== undefined

export const isRefused = (each: object): each is Refused => 'refusal' in each

/** Those that have a way back. */
export const notRefused = <Done extends object>(answers: readonly (Done | Refused)[]): Done[] =>
  answers.filter((each): each is Done => !isRefused(each))

/** Sends locked, pending letters back, with their edits, and resolves those that are on their way; the others stay as they are. */
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
  // What was edited and does not leave must not stay edited.
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

/** What became of a single letter; a failure when it is refused. */
export function onlyOne<Done extends object>(answers: readonly (Done | Refused)[]): Done {
  const [answer] = answers
  if (answer === undefined) throw new Error('a letter was neither sent nor refused')
  if (isRefused(answer)) throw answer.refusal
  return answer
}

/** What a receiver would get of a letter. */
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

/** Makes locked letters pending again, where nothing of them is under way; gives the others, which stay as they are. */
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

/**
 * What an operator makes of a letter without sending it: discard and expire it, and restore it from either. A letter
 * that was retried can be restored until its item is being worked on: the item is taken back first.
 */
export interface Change {
  readonly status: LetterStatus
  /** Blank ones are none. */
  readonly notes: string | null
  readonly actor: string
  /** The redrive that discards it; left out: none does. */
  readonly redrive?: RedriveRef
}

/** Gives a locked letter another status; gives the letter as it is then. */
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

/*
 * Letters of redrives that leave over a network: which redrive a letter leaves for is on file before its first byte does (the act
 * `intend`), because nothing else can be written in the same moment. Who finds such a letter later can tell whether it went.
 */

/** A letter of this version did not leave, as far as anybody knows. Nothing happens when something has happened to it. */
export async function forgoRedrive(
  work: OfficeWork,
  id: LetterId,
  version: number,
  redrive: Pick<RedriveRef, 'number'>,
): Promise<void> {
  const letter = (await lockCandidates(work.tx, [id])).get(id)
  const isSame = letter?.version === version && letter.redrive === redrive.number
  if (letter !== undefined && isSame) await change(work, 'forgo', [letter], NOBODY)
}

const AFTER = 'letter_id = $1 AND correlation_id IS NOT NULL AND letter_version > $2'

/** The history of one letter, on history_of_letter. */
const findSend = sql(
  'letters.sentForRedrive',
  `SELECT 1 AS sent FROM bartleby.history WHERE ${AFTER} AND position(convert_to($3, 'UTF8') IN output) > 0 LIMIT 1`,
)

/** Whether history says that this redrive sent the letter, whatever was done to it since it had this version. */
export async function wasSentFor(
  session: Session,
  letter: LetterId,
  version: number,
  { id }: Pick<RedriveRef, 'id'>,
): Promise<boolean> {
  return (await session.rows(findSend, letter, version, `"redrive":"${id}"`)).length > 0
}
