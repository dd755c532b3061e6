/** Letters of a frozen plan that would overtake an earlier one of their key, which is pending and not in the plan. */
import { instant } from '../../core/clock.ts'
import { letterId, STATUS } from '../../letters/letter.ts'
import {
  addToKey,
  type CapturePlace,
  isBefore,
  type LettersOfKey,
  MOST_STEPS,
  mixedKeys,
  readPlannables,
} from '../../letters/lists/bulk-letters.ts'
import { type Integer, type Session, sql } from '../../store/database.ts'
import { rowsGiven } from '../../store/idioms.ts'
import type { RedriveNumber } from '../redrive.ts'
import type { Lane } from '../rows/lanes.ts'
import type { LaneLetter } from '../rows/members.ts'

/**
 * The first pending letter of a key outside the set: letters_pending_of_key, and redrive_letters_of for each step. `<> 1`, because of
 * `IS NULL` PostgreSQL believes that it must pass all letters of a key.
 */
const readFirstOutside = sql(
  'redrive.firstOutside',
  `SELECT found.* FROM unnest($1::text[]) AS given (key) CROSS JOIN LATERAL (
     SELECT instance_id, captured_at, id FROM bartleby.letters INDEXED BY letters_pending_of_key
     WHERE engine = $3 AND instance_id = given.key AND status = ${STATUS.Pending}
       AND coalesce((SELECT 1 FROM bartleby.redrive_letters AS member INDEXED BY redrive_letters_of
         WHERE member.letter = letters.id AND member.redrive = $2), 0) <> 1
     ORDER BY captured_at, id LIMIT 1) AS found`,
  { bigints: true },
)

const MOST_COUNTED = 50_000

/** The letters of a plan by key. A plan with all letters of its keys, as most have, is not gone through again. */
export class KeysOfPlan {
  readonly #byEngine = new Map<string, Map<string, LettersOfKey>>()
  #size = 0

  add(engine: string, key: string, place: CapturePlace): void {
    if (this.#size > MOST_COUNTED) return
    const keys = this.#byEngine.get(engine) ?? new Map<string, LettersOfKey>()
    this.#byEngine.set(engine, keys)
    if (!keys.has(key)) this.#size++
    addToKey(keys, key, place)
  }

  /** Whether no other letter is pending before one of these. `session` is the snapshot in which they were found. */
  async areWhole(session: Session): Promise<boolean> {
    if (this.#size > MOST_COUNTED) return false
    for (const [engine, keys] of this.#byEngine) {
      const all = [...keys.values()]
      if (all.some(({ letters }) => letters > MOST_STEPS)) return false
      if ((await mixedKeys(session, engine, all)).size > 0) return false
    }
    return true
  }
}

/** By key, the first pending letter outside the set. */
export type FirstsOfKeys = Map<string, CapturePlace | null>

/** Keys remembered: one with many letters is looked up once, not per thousand letters. */
const MOST_KEYS = 10_000

/** Letters of a lane that an earlier one of their key holds back. */
export async function blockedOf(
  session: Session,
  lane: Lane,
  letters: readonly LaneLetter[],
  firsts: FirstsOfKeys,
): Promise<readonly LaneLetter[]> {
  const found = await readPlannables(
    session,
    letters.map(({ letter }) => letter),
  )
  const keyOfLetter = new Map(found.map(({ id, key }) => [id, key]))
  const keyOf = ({ letter }: LaneLetter): string | null => keyOfLetter.get(letter) ?? null
  const keys = new Set(letters.map(keyOf).filter((key) => key !== null))
  await learn(session, lane, [...keys], firsts)
  return letters.filter((each) => {
    const first = firsts.get(keyOf(each) ?? '') ?? null
    return first !== null && isBefore(first, { capturedAt: each.capturedAt, id: each.letter })
  })
}

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
  const rows = await rowsGiven<{ instance_id: string; captured_at: Integer; id: Integer }>(
    session,
    readFirstOutside,
    asked.map((key) => ({ key })),
    redrive,
    engine,
  )
  for (const { instance_id, captured_at, id } of rows)
    firsts.set(instance_id, { capturedAt: instant(BigInt(captured_at)), id: letterId(id) })
}
