/**
 * Letters of a plan that would go out before an earlier one of their key, because that one is pending and not in the plan: they are
 * taken out of it again. Found once the set is complete, key by key.
 */
import { setImmediate as othersTurn } from 'node:timers/promises'
import { instant } from '../core/clock.ts'
import { type Database, type Integer, type Session, sql, type Transaction, textList } from '../db/database.ts'
import { type CapturePlace, isBefore, readCandidates } from '../letters/candidates.ts'
import { type LetterId, letterId, STATUS } from '../letters/letter.ts'
import { isOfQueues } from './destinations.ts'
import { LANE_START, type Lane, type LanePlace } from './lanes.ts'
import { nextLetters } from './members.ts'
import type { RedriveNumber } from './redrive.ts'

/**
 * Of each key, the first pending letter that is not in the set: letters_pending_of_key, and redrive_letters_of for each step. Not NOT
 * EXISTS, and a plus: PostgreSQL would go through the whole set for every key.
 */
const readFirstOutside = sql(
  'redrive.firstOutside',
  {
    postgres: `
      SELECT asked.key, first.captured_at, first.id FROM unnest($3::text[]) AS asked (key) CROSS JOIN LATERAL (
        SELECT captured_at, id FROM bartleby.letters
        WHERE engine = $2 AND instance_id = asked.key AND status = ${STATUS.Pending}
          AND (SELECT 1 FROM bartleby.redrive_letters AS member WHERE member.letter = letters.id AND +member.redrive = $1) IS NULL
        ORDER BY engine, instance_id, captured_at, id LIMIT 1) AS first`,
    sqlite: `
      SELECT $3 AS key, captured_at, id FROM letters INDEXED BY letters_pending_of_key
      WHERE engine = $2 AND instance_id = $3 AND status = ${STATUS.Pending}
        AND NOT EXISTS (SELECT 1 FROM redrive_letters AS member INDEXED BY redrive_letters_of
          WHERE member.letter = letters.id AND member.redrive = $1)
      ORDER BY captured_at, id LIMIT 1`,
  },
  { bigints: true },
)

/** Letters of a lane, by primary key. */
const removeLetters = sql('redriveLetters.takeOut', {
  postgres: `DELETE FROM bartleby.redrive_letters WHERE ctid = ANY(ARRAY(
               SELECT found.place FROM unnest($3::bigint[], $4::bigint[]) AS given (captured_at, letter) CROSS JOIN LATERAL (
                 SELECT ctid AS place FROM bartleby.redrive_letters AS member
                 WHERE member.redrive = $1 AND member.lane = $2 AND member.captured_at = given.captured_at
                   AND member.letter = given.letter LIMIT 1) AS found))`,
  sqlite: 'DELETE FROM redrive_letters WHERE redrive = $1 AND lane = $2 AND captured_at = $3 AND letter = $4',
})

const LOOK = 1_000
/** Keys that are remembered: one with very many letters is looked into once, and not for every thousand of them. */
const MOST_KEYS = 10_000

/** Takes letters that an earlier one holds back out of a lane; gives how many. */
export async function takeOutBlocked(db: Database, lane: Lane, signal: AbortSignal): Promise<number> {
  if (!isOfQueues(lane.source)) return 0
  const firsts = new Map<string, CapturePlace | null>()
  let [behind, taken] = [LANE_START, 0]
  for (;;) {
    signal.throwIfAborted()
    const from = behind
    const look = await db.session('redrive.order', (session) => blockedIn(session, lane, from, firsts))
    if (look.blocked.length > 0) {
      await db.transaction('redrive.takeOut', (tx) => takeOut(tx, lane, look.blocked))
      taken += look.blocked.length
    }
    if (look.end === null) return taken
    behind = look.end
    await othersTurn()
  }
}

async function takeOut(
  tx: Transaction,
  { redrive, lane }: Lane,
  letters: readonly CapturePlace[],
): Promise<void> {
  if (tx.dialect === 'sqlite') {
    await tx.runEach(
      removeLetters,
      letters.map(({ capturedAt, id }) => [redrive, lane, capturedAt, id]),
    )
    return
  }
  const times = letters.map(({ capturedAt }) => capturedAt)
  const ids = letters.map(({ id }) => id)
  await tx.run(removeLetters, redrive, lane, `{${times.join(',')}}`, `{${ids.join(',')}}`)
}

async function blockedIn(
  session: Session,
  lane: Lane,
  behind: LanePlace,
  firsts: Map<string, CapturePlace | null>,
): Promise<{ readonly blocked: readonly CapturePlace[]; readonly end: LanePlace | null }> {
  const letters = await nextLetters(session, lane, behind, LOOK)
  const candidates = await readCandidates(
    session,
    letters.map(({ letter }) => letter),
  )
  const keyed: {
    readonly key: string
    readonly id: LetterId
    readonly capturedAt: CapturePlace['capturedAt']
  }[] = []
  for (const { letter, capturedAt } of letters) {
    const key = candidates.get(letter)?.key ?? null
    if (key !== null) keyed.push({ key, id: letter, capturedAt })
  }
  await learn(session, lane, [...new Set(keyed.map(({ key }) => key))], firsts)
  const blocked = keyed.filter((letter) => {
    const first = firsts.get(letter.key) ?? null
    return first !== null && isBefore(first, letter)
  })
  return { blocked, end: letters.length < LOOK ? null : (letters.at(-1) ?? null) }
}

/** Finds the first letter outside the set for keys that are not known yet. */
async function learn(
  session: Session,
  { redrive, engine }: { readonly redrive: RedriveNumber; readonly engine: string },
  keys: readonly string[],
  firsts: Map<string, CapturePlace | null>,
): Promise<void> {
  if (firsts.size > MOST_KEYS) firsts.clear()
  const asked = keys.filter((key) => !firsts.has(key))
  if (asked.length === 0) return
  for (const key of asked) firsts.set(key, null)
  const { dialect } = session
  const lists = dialect === 'postgres' ? [textList(dialect, asked)] : asked
  for (const list of lists) {
    const rows = await session.rows<{ key: string; captured_at: Integer; id: Integer }>(
      readFirstOutside,
      redrive,
      engine,
      list,
    )
    for (const row of rows)
      firsts.set(row.key, { capturedAt: instant(BigInt(row.captured_at)), id: letterId(row.id) })
  }
}
