/**
 * Looks at a redrive until it has ended, or longer: until it is known what became of what was sent. Where nobody sits at a terminal a
 * pause ends it too: a script would wait for ever for somebody to resume it. On a terminal it is redrawn in place, anywhere else told
 * line by line.
 */
import { pathTo } from '../../client/envelope.ts'
import { OfficeClientError } from '../../client/errors.ts'
import type { RedriveDetail, RedriveItem } from '../../client/redrive-types.ts'
import { sleep } from '../../client/waiting.ts'
import { isOver, isSending } from '../../redrive/redrive.ts'
import { reasonOf } from '../exit.ts'
import type { Desk } from '../office.ts'
import { styleOf } from '../style.ts'
import { printable, type Screen, type Terminal } from '../terminal.ts'
import { frameOf, lineOf } from './watch-frame.ts'

interface Followed {
  readonly redrive: RedriveDetail
  /** Whoever watched went away before the end. */
  readonly left: boolean
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 1_000
const LOOK_TIMEOUT_MS = 10_000

/**
 * Watches from how it stood at `first`, and waits so long at most for outcomes after the end; null: not for them. Ctrl-C ends the
 * watching, and nothing else.
 */
export async function follow(desk: Desk, first: RedriveDetail, waitMs: number | null): Promise<Followed> {
  const { terminal, json } = desk
  const stop = new AbortController()
  const end = terminal.onInterrupt(() => stop.abort())
  const isAttended = terminal.screen !== undefined && !json
  const display = displayOn(terminal, { json })
  let redrive = first
  let overSinceMs: number | null = null
  try {
    display.show(redrive)
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
      if (redrive.state === 'paused' && !isAttended) return { redrive, left: false }
      if (isOver(redrive.state)) overSinceMs ??= performance.now()
      const leftMs = timeLeft(redrive, waitMs, overSinceMs)
      if (leftMs <= 0 || stop.signal.aborted) return { redrive, left: leftMs > 0 }
      await sleep(Math.min(pauseMs, leftMs), stop.signal)
      const found = stop.signal.aborted ? redrive : await look(desk, redrive.id, stop.signal)
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
  waitMs: number | null,
  overSinceMs: number | null,
): number {
  if (overSinceMs === null) return Number.POSITIVE_INFINITY
  // One that was stopped has not succeeded, whatever is heard of its letters.
  const isKnown = !isSending(action) || counts.unconfirmed === 0 || state !== 'done'
  return waitMs === null || isKnown ? 0 : overSinceMs + waitMs - performance.now()
}

/** How it stands, or why nobody can say: a server that is started again goes on with it. */
async function look({ call }: Desk, id: string, signal: AbortSignal): Promise<RedriveDetail | string> {
  const patience = { signal, timeoutMs: LOOK_TIMEOUT_MS, once: true }
  try {
    return await call('GET', pathTo('/api/redrives', id), undefined, patience)
  } catch (error) {
    if (error instanceof OfficeClientError && error.status >= 400 && error.status < 500) throw error
    return printable(reasonOf(error))
  }
}

interface Display {
  show(redrive: RedriveItem): void
  /** It cannot be looked at now, because of this. */
  trouble(reason: string): void
  /** Takes away what would stay on the screen. */
  end(): void
}

const SILENT: Display = { show: () => {}, trouble: () => {}, end: () => {} }

/** The display that this terminal has; `json` has none. `nowMs` tells how much time has passed. */
export function displayOn(
  terminal: Terminal,
  { json = false }: { readonly json?: boolean },
  nowMs: () => number = () => performance.now(),
): Display {
  if (json) return SILENT
  return terminal.screen === undefined ? lines(terminal, nowMs) : inPlace(terminal, terminal.screen)
}

/** Numbers that change are told this often; another state at once. */
const LINE_MS = 5_000

function lines({ err }: Terminal, nowMs: () => number): Display {
  let [said, saidState, saidTrouble] = ['', '', '']
  let saidAtMs = Number.NEGATIVE_INFINITY
  return {
    show(redrive) {
      saidTrouble = ''
      const line = lineOf(redrive)
      const isNew = line !== said && (redrive.state !== saidState || nowMs() - saidAtMs >= LINE_MS)
      if (!isNew) return
      ;[said, saidState, saidAtMs] = [line, redrive.state, nowMs()]
      err(line)
    },
    trouble(reason) {
      if (reason !== saidTrouble) err(`no answer, trying on: ${reason}`)
      saidTrouble = reason
    },
    end: () => {},
  }
}

/** The cursor goes up to the first line of the last picture; what follows it is erased. */
const over = (rows: number): string => `${rows === 0 ? '' : `\u001b[${rows}A`}\r\u001b[J`
// Without cursor, and with lines that end at the edge instead of going on below it: rows are counted.
const ENTER = '\u001b[?25l\u001b[?7l'
const LEAVE = '\u001b[?7h\u001b[?25h'

function inPlace(terminal: Terminal, screen: Screen): Display {
  let rows = 0
  let last: RedriveItem | null = null
  const draw = (picture: readonly string[]) => {
    const fitting = picture.slice(0, Math.max(1, screen.rows - 1))
    screen.draw(`${over(rows)}${fitting.map((line) => `${line}\r\n`).join('')}`)
    rows = fitting.length
  }
  const style = styleOf(terminal)
  screen.draw(ENTER)
  return {
    show(redrive) {
      last = redrive
      draw(frameOf(redrive, screen.columns, style))
    },
    trouble(reason) {
      const shown = last === null ? [] : frameOf(last, screen.columns, style)
      draw([...shown, style.red(`no answer, trying on: ${reason}`)])
    },
    end: () => screen.draw(`${over(rows)}${LEAVE}`),
  }
}
