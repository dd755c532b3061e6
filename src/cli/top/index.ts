/** `bartleby top`: an office as it is now, redrawn. */
import type { Page } from '../../client/envelope.ts'
import { OfficeClientError } from '../../client/errors.ts'
import type { LetterCounts, LetterItem, SignatureGroup } from '../../client/letter-types.ts'
import { sleep } from '../../core/waiting.ts'
import type { Session } from '../../http/session/shapes.ts'
import type { QueueView } from '../../queues/shapes.ts'
import { reasonOf } from '../../terminal/exit.ts'
import { decimal } from '../../terminal/flags.ts'
import { type CallOffice, type Desk, listAll, officeCommand } from '../../terminal/office.ts'
import { type Screen, styleOf } from '../../terminal/terminal.ts'
import { nowMs } from '../../terminal/words.ts'
import { frame, type Look, type Picture } from './frame.ts'

export const topCommand = officeCommand(
  'top',
  'Watch an office: counts, errors, queues and the newest letters, redrawn every two seconds.',
  ['top', 'top --interval 10', 'top --once', 'top --once --json | jq .counts.totals'],
)
  .option('--interval <seconds>', 'how often to look', '2')
  .option('--once', 'print one picture and end; so it does where stdout is no terminal')
  .help('q and Ctrl-C leave. A server that does not answer is asked again until it does.')
  .work(async (desk, flags) => {
    const intervalMs = decimal('--interval', flags.interval, 'seconds, at least 0.1', 0.1) * 1_000
    const { screen } = desk.terminal
    if (flags.once || flags.json || screen === undefined) await printOnce(desk)
    else await watch(desk, intervalMs, screen)
  })

async function printOnce({ call, endpoint: { url }, terminal, print }: Desk): Promise<void> {
  print(await lookAt(call), (look, style) => {
    const now = nowMs()
    const canvas = { columns: terminal.screen?.columns, rows: undefined, style }
    return frame({ url, look, trouble: null, now, lookedAt: now }, canvas).join('\n')
  })
}

// The alternate screen, restored afterwards; without cursor or line wrap.
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l'
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
/** From the cursor to the end of the line, and of the screen. */
const CLEAR_LINE = '\u001b[K'
const CLEAR_BELOW = '\u001b[J'

const LOOK_TIMEOUT_MS = 10_000

const CTRL_C = '\u0003'

async function watch({ call, endpoint, terminal }: Desk, intervalMs: number, screen: Screen): Promise<void> {
  const left = new AbortController()
  const leave = () => left.abort()
  let picture: Picture = { url: endpoint.url, look: null, trouble: null, now: nowMs(), lookedAt: nowMs() }
  const draw = () => {
    const canvas = { columns: screen.columns, rows: screen.rows, style: styleOf(terminal) }
    // Line by line over the old picture, so that nothing flickers.
    const lines = frame(picture, canvas).map((line) => `${line}${CLEAR_LINE}`)
    screen.draw(`${HOME}${lines.join('\r\n')}${CLEAR_BELOW}`)
  }
  const ends = [
    terminal.onInterrupt(leave),
    screen.onKey((key) => {
      if (key === 'q' || key === 'Q' || key === CTRL_C) leave()
    }),
    screen.onResize(draw),
  ]
  screen.draw(ENTER)
  try {
    draw()
    while (!left.signal.aborted) {
      picture = shown(picture, await tryToLook(call, left.signal))
      if (!left.signal.aborted) draw()
      await sleep(intervalMs, left.signal)
    }
  } finally {
    for (const end of ends) end()
    screen.draw(LEAVE)
  }
}

type Found = { readonly look: Look } | { readonly trouble: string }

async function tryToLook(call: CallOffice, signal: AbortSignal): Promise<Found> {
  const bounded: CallOffice = (method, path, body) =>
    call(method, path, body, { signal, timeoutMs: LOOK_TIMEOUT_MS, once: true })
  try {
    return { look: await lookAt(bounded) }
  } catch (error) {
    // Asking again gives no other token.
    if (error instanceof OfficeClientError && [401, 403].includes(error.status)) throw error
    return { trouble: reasonOf(error) }
  }
}

/** Trouble keeps the last look on the screen, with its age. */
function shown(before: Picture, found: Found): Picture {
  const now = nowMs()
  if ('look' in found) return { ...before, look: found.look, trouble: null, now, lookedAt: now }
  return { ...before, trouble: found.trouble, now }
}

const MOST = 50
/** Too many for every other second. */
const MOST_QUEUES = 1_000

async function lookAt(call: CallOffice): Promise<Look> {
  const [session, counts, groups, queues, newest] = await Promise.all([
    call<Session>('GET', '/api/session'),
    call<LetterCounts>('GET', '/api/counts?by=source,status'),
    call<Page<SignatureGroup>>('GET', `/api/signatures?limit=${MOST}`),
    listAll<QueueView>({ call }, '/api/queues', {}, MOST_QUEUES),
    call<Page<LetterItem>>('GET', `/api/dlq?limit=${MOST}`),
  ])
  return {
    version: session.version,
    environment: session.environment.name,
    counts,
    groups: groups.items,
    queues: queues.toSorted((a, b) => depthOf(b) - depthOf(a)),
    newest: newest.items,
  }
}

const depthOf = ({ ready, leased, scheduled, held, dead, letters }: QueueView): number =>
  ready + leased + scheduled + held + dead + letters
