/**
 * Looks at a redrive until it has ended, or longer: until it is known what became of what was sent. Where nobody sits at a terminal a
 * pause ends it too: a script would wait for ever for somebody to resume it.
 */
import { OfficeClientError } from '../../client/errors.ts'
import type { RedriveDetail } from '../../client/redrive-types.ts'
import { sleep } from '../../client/waiting.ts'
import { isOver, isSending } from '../../redrive/redrive.ts'
import { reasonOf } from '../exit.ts'
import type { OfficeServer } from '../office-call.ts'
import { printable, type Terminal } from '../terminal.ts'
import { displayOn } from './display.ts'
import { redrivePath } from './paths.ts'

export interface Following {
  /** How long outcomes are waited for after the end; null: they are not. */
  readonly waitMs: number | null
  readonly json?: boolean
}

export interface Followed {
  readonly redrive: RedriveDetail
  /** Whoever watched went away before the end. */
  readonly left: boolean
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 1_000
const LOOK_TIMEOUT_MS = 10_000

/** Watches from how it stood at `first`. Ctrl-C ends the watching, and nothing else. */
export async function follow(
  office: OfficeServer,
  first: RedriveDetail,
  following: Following,
  terminal: Terminal,
): Promise<Followed> {
  const stop = new AbortController()
  const end = terminal.onInterrupt(() => stop.abort())
  const isAttended = terminal.screen !== undefined && !following.json
  const display = displayOn(terminal, { json: following.json ?? false })
  let redrive = first
  let overSinceMs: number | null = null
  try {
    display.show(redrive)
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
      if (redrive.state === 'paused' && !isAttended) return { redrive, left: false }
      if (isOver(redrive.state)) overSinceMs ??= performance.now()
      const leftMs = timeLeft(redrive, following, overSinceMs)
      if (leftMs <= 0 || stop.signal.aborted) return { redrive, left: leftMs > 0 }
      await sleep(Math.min(pauseMs, leftMs), stop.signal)
      const found = stop.signal.aborted ? redrive : await look(office, redrive.id, stop.signal)
      if (typeof found === 'string') display.trouble(found)
      else {
        redrive = found
        display.show(redrive)
      }
    }
  } finally {
    display.end()
    end()
  }
}

/** How much longer it is looked at, in milliseconds. */
function timeLeft(
  { state, action, counts }: RedriveDetail,
  { waitMs }: Following,
  overSinceMs: number | null,
): number {
  if (overSinceMs === null) return Number.POSITIVE_INFINITY
  // One that was stopped has not succeeded, whatever is heard of its letters.
  const isKnown = !isSending(action) || counts.unconfirmed === 0 || state !== 'done'
  return waitMs === null || isKnown ? 0 : overSinceMs + waitMs - performance.now()
}

/** How it stands, or why nobody can say: a server that is started again goes on with it. */
async function look(office: OfficeServer, id: string, signal: AbortSignal): Promise<RedriveDetail | string> {
  try {
    return await office.call('GET', redrivePath(id), undefined, {
      signal,
      timeoutMs: LOOK_TIMEOUT_MS,
      once: true,
    })
  } catch (error) {
    if (error instanceof OfficeClientError && error.status >= 400 && error.status < 500) throw error
    return printable(reasonOf(error))
  }
}
