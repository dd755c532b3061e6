/**
 * Redrives, consumers, operators and two servers at the same letters, in any order: at every moment the counts of each redrive add
 * up, no letter has two items, and in the end every redrive is over, each letter went out at most once for each of its versions, and
 * those of a key in the order of their capture.
 */
import { describe, expect, it } from 'vitest'
import { isSending, type RedriveStanding } from '../../src/redrive/redrive.ts'
import { isProof, sizeOf } from '../world/limits.ts'
import { checkPrograms, type Step } from '../world/model.ts'
import { reused } from '../world/reused-store.ts'
import { doubledIn, type KeyedLetter, type Send, sendsIn, waitingIn } from '../world/sent-letters.ts'
import { stores } from '../world/stores.ts'
import { violationsIn } from '../world/verified.ts'
import { Day } from './day.ts'
import { days } from './steps.ts'
import { TwoOffices } from './two-offices.ts'

const RUNS = sizeOf({ sqlite: 10, postgres: 4 }, { sqlite: 400, postgres: 100 })

describe.each(stores)('redrives on $name, whatever happens to them', (kind) => {
  const store = reused(kind)

  it('send each letter once, in order, and count it', () =>
    checkPrograms(
      days,
      RUNS[kind.name],
      async (steps) => {
        const offices = await TwoOffices.open(store)
        try {
          await live(offices, steps)
        } finally {
          await offices.close()
        }
      },
      { shrinks: isProof },
    ))
})

async function live(offices: TwoOffices, steps: readonly Step<Day>[]): Promise<void> {
  const day = new Day(offices)
  await day.begin()
  const looks = new Looks(offices)
  for (const step of steps) {
    await day.take(step)
    await addsUp(offices)
    expect(await doubledIn(offices.db)).toEqual([])
    expect(await looks.overtaken()).toEqual([])
  }
  await day.end()
  await addsUp(offices)
  expect(await violationsIn(offices.db)).toEqual([])
  const redrives = await offices.redrives()
  const sends = await sendsIn(offices.db)
  expect(repeated(sends)).toEqual([])
  expect(outOfOrder(sends.filter(isOf(keepingOrder(redrives))))).toEqual([])
  for (const { id, action, counts } of redrives)
    if (isSending(action)) expect(sends.filter(({ redrive }) => redrive === id)).toHaveLength(counts.sent)
}

const keepingOrder = (redrives: readonly RedriveStanding[]): ReadonlySet<string> =>
  new Set(redrives.filter(({ terms }) => terms.order === 'key').map(({ id }) => id))

const isOf =
  (redrives: ReadonlySet<string>) =>
  ({ redrive }: Send): boolean =>
    redrive !== null && redrives.has(redrive)

/** What went out between two looks, and what waited all the while. */
class Looks {
  readonly #offices: TwoOffices
  #waiting: readonly KeyedLetter[] = []
  #sends = new Set<string>()

  constructor(offices: TwoOffices) {
    this.#offices = offices
  }

  /** Letters that stayed behind while a later one of their key was sent by a redrive that keeps order. */
  async overtaken(): Promise<string[]> {
    const before = new Set(this.#waiting.map(({ letter, version }) => `${letter}-${version}`))
    const waiting = await waitingIn(this.#offices.db)
    const sends = await sendsIn(this.#offices.db)
    const nameOf = ({ letter, version }: Send): string => `${letter}-${version}`
    const news = sends
      .filter((send) => !this.#sends.has(nameOf(send)))
      .filter(isOf(keepingOrder(await this.#offices.redrives())))
    this.#waiting = waiting
    this.#sends = new Set(sends.map(nameOf))
    return waiting
      .filter(({ letter, version }) => before.has(`${letter}-${version}`))
      .filter((behind) => news.some((sent) => sent.key === behind.key && sent.capturedAt > behind.capturedAt))
      .map(({ letter, key }) => `letter ${letter} of ${key}`)
  }
}

async function addsUp(offices: TwoOffices): Promise<void> {
  for (const { id, counts } of await offices.redrives()) {
    const { planned, sent, skipped, failed, remaining, confirmed, returned, unconfirmed } = counts
    expect(sent + skipped + failed + remaining, id).toBe(planned)
    expect(confirmed + returned + unconfirmed, id).toBe(sent)
    for (const [name, count] of Object.entries(counts))
      expect(count, `${name} of ${id}`).toBeGreaterThanOrEqual(0)
  }
}

/** Versions of letters that went out twice, and letters that one redrive sent twice. */
function repeated(sends: readonly Send[]): string[] {
  const versions = sends.map(({ letter, version }) => `${letter} in version ${version}`)
  const members = sends.flatMap(({ letter, redrive }) => (redrive === null ? [] : `${letter} by ${redrive}`))
  return [versions, members].flatMap((names) => names.filter((name, i) => names.indexOf(name) !== i))
}

/** Letters of a key that one redrive sent after a later one. */
function outOfOrder(sends: readonly Send[]): string[] {
  const groups = Map.groupBy(
    sends.filter(({ key }) => key !== null),
    ({ redrive, key }) => `${redrive} ${key}`,
  )
  return [...groups].flatMap(([name, group]) => {
    const captured = group.toSorted((a, b) => (a.capturedAt < b.capturedAt ? -1 : 1))
    const sent = group.toSorted((a, b) => (a.serial < b.serial ? -1 : 1))
    return captured.some((each, i) => each !== sent[i]) ? [name] : []
  })
}
