/**
 * Letters of a plan that would go out before an earlier one of their key, because that one is pending and not in the plan. Found
 * once the set is frozen, key by key.
 */
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
} from '../../letters/lists/candidates.ts'
import { type Integer, type Session, sql } from '../../store/database.ts'
import { rowsGiven } from '../../store/idioms.ts'
import type { RedriveNumber } from '../redrive.ts'
import type { Lane } from '../rows/lanes.ts'
import type { LaneLetter } from '../rows/members.ts'

/**
 * Of a key, the first pending letter that is not in the set: letters_pending_of_key, and redrive_letters_of for each step. Said by what it is
 * not: of `IS NULL` PostgreSQL believes that all letters of a key have to be passed until one meets it.
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

/** Keys whose letters are counted while a plan is made. */
const MOST_COUNTED = 50_000

/** The letters of a plan by their keys. Few plans hold letters back: those that have all letters of their keys are not gone through again. */
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

  /** Whether no other letter is pending before one of these. `session` is of the moment at which they were found. */
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
