/**
 * Letters of a plan that would go out before an earlier one of their key, because that one is pending and not in the plan. Found
 * once the set is frozen, key by key.
 */
import { instant } from '../core/clock.ts'
import { type Integer, type Session, sql } from '../db/database.ts'
import { type CapturePlace, isBefore, readCandidates } from '../letters/candidates.ts'
import { letterId, STATUS } from '../letters/letter.ts'
import type { Lane } from './lanes.ts'
import type { LaneLetter } from './members.ts'
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

/** Of each key the first pending letter outside the set; null: there is none. */
export type FirstsOfKeys = Map<string, CapturePlace | null>

/** Keys that are remembered: one with very many letters is looked into once, and not for every thousand of them. */
const MOST_KEYS = 10_000

/** Those of the letters of a lane that an earlier one of their key holds back; `firsts` is what is known of keys. */
export async function blockedOf(
  session: Session,
  lane: Lane,
  letters: readonly LaneLetter[],
  firsts: FirstsOfKeys,
): Promise<readonly LaneLetter[]> {
  const candidates = await readCandidates(
    session,
    letters.map(({ letter }) => letter),
  )
  const keyOf = ({ letter }: LaneLetter): string | null => candidates.get(letter)?.key ?? null
  const keys = new Set(letters.map(keyOf).filter((key) => key !== null))
  await learn(session, lane, [...keys], firsts)
  return letters.filter((each) => {
    const first = firsts.get(keyOf(each) ?? '') ?? null
    return first !== null && isBefore(first, { capturedAt: each.capturedAt, id: each.letter })
  })
}

/** Finds the first letter outside the set for keys that are not known yet. */
async function learn(
  session: Session,
  { redrive, engine }: { readonly redrive: RedriveNumber; readonly engine: string },
  keys: readonly string[],
  firsts: FirstsOfKeys,
): Promise<void> {
  if (firsts.size > MOST_KEYS) firsts.clear()
  const asked = keys.filter((key) => !firsts.has(key))
  if (asked.length === 0) return
  for (const key of asked) firsts.set(key, null)
  const { dialect } = session
  const lists = dialect === 'postgres' ? [asked] : asked
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
