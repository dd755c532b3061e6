/**
 * What outcomes say about a redrive. The canary: a few letters go first, the others when enough of these are confirmed. The stop rule:
 * how many of the last outcomes were deaths, in the order seen; those seen together count together. Its memory is stored with the redrive
 * for the next server.
 */
import type { Outcomes } from '../../letters/numbers/counts.ts'
import type { Verdict } from '../commands.ts'
import type { Canary, RedriveCounts, StopRule } from '../redrive.ts'

export const leftOfCanary = ({ letters }: Canary, sent: number): number => Math.max(0, letters - sent)

/** All of its letters, or all there are. */
export const isCanarySent = ({ letters }: Canary, { sent, remaining }: RedriveCounts): boolean =>
  sent >= letters || remaining === 0

/** Verdict of a canary, `waitedUs` after its last letter; null: not yet. */
export function canaryVerdict(canary: Canary, counts: RedriveCounts, waitedUs: bigint): Verdict | null {
  const { sent, confirmed, returned } = counts
  const needed = Math.ceil((sent * canary.confirmPercent) / 100)
  if (confirmed >= needed) return { state: 'running', note: null }
  const soFar = `of ${sent} letters that went first ${confirmed} were confirmed and ${returned} came back, ${needed} must be confirmed`
  if (returned > sent - needed) return { state: 'stopped', note: soFar }
  if (waitedUs < BigInt(Math.round(canary.waitSeconds * 1e6))) return null
  return { state: 'paused', note: `${soFar}; nothing was heard of the others for ${canary.waitSeconds} s` }
}

type Look = readonly [confirmed: number, returned: number]

export interface Recent {
  readonly seen: Outcomes
  readonly looks: readonly Look[]
}

const NOTHING: Recent = { seen: { confirmed: 0, returned: 0 }, looks: [] }

export const readRecent = (text: string | null): Recent =>
  text === null ? NOTHING : (JSON.parse(text) as Recent)

/** Looks kept apart; beyond that the oldest are merged. */
const MOST_LOOKS = 200

/** Adds what is new in `seen` and forgets what is older than the last `of` outcomes. */
export function lookAgain(
  { seen: before, looks }: Recent,
  { confirmed, returned }: Outcomes,
  { of }: StopRule,
): Recent {
  const seen = { confirmed, returned }
  const look: Look = [seen.confirmed - before.confirmed, seen.returned - before.returned]
  if (look[0] === 0 && look[1] === 0) return { seen, looks }
  const kept: Look[] = [...looks, look]
  let outcomes = sum(kept)
  for (let [oldest] = kept; oldest !== undefined && outcomes - size(oldest) >= of; [oldest] = kept) {
    outcomes -= size(oldest)
    kept.shift()
  }
  while (kept.length > MOST_LOOKS) {
    const [[a, b] = [0, 0], [c, d] = [0, 0]] = kept.splice(0, 2)
    kept.unshift([a + c, b + d])
  }
  return { seen, looks: kept }
}

const size = ([confirmed, returned]: Look): number => confirmed + returned
const sum = (looks: readonly Look[]): number => looks.reduce((total, look) => total + size(look), 0)

/** Whether more of the last outcomes were deaths than allowed. Missing outcomes count as good. */
export function saysHalt({ looks }: Recent, { percent, of }: StopRule): boolean {
  const returned = looks.reduce((total, [, each]) => total + each, 0)
  return returned * 100 > percent * Math.max(of, sum(looks))
}

export function haltNote({ looks }: Recent, { percent, of }: StopRule): string {
  const returned = looks.reduce((total, [, each]) => total + each, 0)
  return `${returned} of the last ${Math.max(returned, Math.min(of, sum(looks)))} letters came back dead, and ${percent}% of ${of} are allowed`
}
