/**
 * Events that died again after they were sent: the same letter reopens, whatever its state. It stands for the new record from then on;
 * the one before goes to its chain. Who held it meanwhile finds its claim and its event id gone.
 */
import type { Transaction } from '../../db/database.ts'
import type { DeathNote, Registers } from '../../letters/death-note.ts'
import type { LetterId } from '../../letters/letter.ts'
import { type CaseRow, lockLettersOf, reopenedIn, reopenLetters } from '../../letters/reopen.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { type EventId, KAFKA_OPERATIONS } from '../event.ts'
import { type KnownSend, readSendsByIds } from './known-sends.ts'
import type { Reopening } from './store-incoming.ts'
import { noteDeaths } from './store-notes.ts'
import { renewAll } from './store-renew.ts'
import { type Settled, settleOpenSends } from './store-settle.ts'

/** The letters that records may reopen, locked until the transaction ends. */
export interface Cases {
  readonly letters: ReadonlyMap<LetterId, CaseRow>
  /** The publishes of these letters. */
  readonly sends: ReadonlyMap<EventId, KnownSend>
}

const NO_CASES: Cases = { letters: new Map(), sends: new Map() }

/** Locks the letters of publishes that records may have died of, and tells what is true of them from then on. */
export async function holdCases(tx: Transaction, ids: readonly EventId[]): Promise<Cases> {
  if (ids.length === 0) return NO_CASES
  const asked = await readSendsByIds(tx, ids)
  const letters = await lockLettersOf(tx, [...new Set([...asked.values()].map((send) => send.letterId))])
  // Read again: another server may have reopened one before its lock was ours.
  const sends = await readSendsByIds(tx, ids)
  return {
    letters,
    sends: new Map([...sends].filter(([, send]) => letters.has(send.letterId))),
  }
}

/** Reopens letters, one that dies several times one time after the other; gives what turned out to be published by it. */
export async function reopenAll(
  work: OfficeWork,
  registers: Registers,
  reopenings: readonly Reopening[],
  { letters }: Cases,
): Promise<readonly Settled[]> {
  const cases = new Map(letters)
  const settled: Settled[] = []
  for (let rest = reopenings; rest.length > 0; ) {
    const round = [...new Map(rest.toReversed().map((each) => [each.letterId, each])).values()].toReversed()
    settled.push(...(await reopenRound(work, registers, round, cases)))
    const done = new Set(round)
    rest = rest.filter((each) => !done.has(each))
  }
  return settled
}

async function reopenRound(
  work: OfficeWork,
  registers: Registers,
  round: readonly Reopening[],
  cases: Map<LetterId, CaseRow>,
): Promise<readonly Settled[]> {
  const settled = await settleOpenSends(work, round, cases)
  const entries = round.map(({ entry }) => entry)
  const notes = await noteDeaths(work, registers, KAFKA_OPERATIONS.reopened, entries, (index) => ({
    event_id: round[index]?.send,
  }))
  await renewAll(work, round)
  const relapses = round.map(({ letterId, entry }, index) => ({
    letterId,
    note: noteAt(notes, index),
    diedAs: entry.sourceId,
    attempts: 1,
    grave: null,
    recordedAt: work.now,
  }))
  await reopenLetters(work, relapses, cases)
  for (const { letterId, note } of relapses) {
    const before = cases.get(letterId)
    if (before !== undefined) cases.set(letterId, reopenedIn(before, note.drawer))
  }
  return settled
}

function noteAt(notes: readonly DeathNote[], index: number): DeathNote {
  const note = notes[index]
  if (note === undefined) throw new Error('a record died of nothing')
  return note
}
