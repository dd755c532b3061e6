/** `bartleby redrive start` and `watch`: a redrive from its start to its end. */
import type { Command } from 'commander'
import { pathTo } from '../../client/envelope.ts'
import { OfficeClientError } from '../../client/errors.ts'
import type { RedriveDetail, RedriveItem, RedriveLetter } from '../../client/redrives.ts'
import { sleep } from '../../core/waiting.ts'
import { isOver, isSending } from '../../redrive/redrive.ts'
import { failed, reasonOf } from '../../terminal/exit.ts'
import { waitTimeoutMs } from '../../terminal/flags.ts'
import { type Desk, type OfficeFlags, officeCommand } from '../../terminal/office.ts'
import { printable, type Screen, styleOf, type Terminal } from '../../terminal/terminal.ts'
import { grouped } from '../../terminal/words.ts'
import { reasonWords } from './text.ts'
import { accountOf, frameOf, lineOf } from './watch-frame.ts'

export interface WatchFlags extends OfficeFlags {
  readonly watch?: boolean
  readonly wait?: boolean
  readonly waitTimeout?: string
}

/** On a server, or on a store that the command opens itself. */
export const redriveCommand = <const Words extends string>(
  words: Words,
  description: string,
  examples: readonly string[],
  isWatching: (flags: WatchFlags) => boolean = ({ watch = false, wait = false }) => watch || wait,
) =>
  officeCommand(`redrive ${words}`, description, examples, isWatching)
    .option('--store <url>', 'no server: open this store here, sqlite:PATH or postgres://…')
    .option('--config <file>', 'with --store: the configuration of its servers, in YAML')

export const waitFlags = (command: Command): Command =>
  command
    .option('--wait', 'watch, and then wait until it is known what became of what was sent')
    .option('--wait-timeout <duration>', 'how long at most after its end', '1m')

/** Null: outcomes are not waited for. */
export const waitMsOf = ({ wait, waitTimeout }: WatchFlags): number | null => {
  const timeoutMs = waitTimeoutMs(waitTimeout)
  return wait ? timeoutMs : null
}

const ENDS = `Exit codes:
  0  done, and no letter failed or returned; with --wait, all are confirmed
  1  stopped, cancelled or paused, letters failed or returned, or you left before its end
  2  wrong usage
  3  there is no such redrive`

export const startCommand = redriveCommand('start <id>', 'Start a plan; a server carries it out.', [
  'start d0sk3v9rkmnc73a1b2cg',
  'start d0sk3v9rkmnc73a1b2cg --watch',
  'start d0sk3v9rkmnc73a1b2cg --wait --wait-timeout 10m',
  'start d0sk3v9rkmnc73a1b2cg --store sqlite:./data/bartleby.db --watch',
])
  .adding<WatchFlags>(waitFlags)
  .option('--watch', 'watch it to its end')
  .help(`With --store and no server on that store, it is this command that carries it out, for as long as it watches.

${ENDS}`)
  .work(async (desk, id, flags) => {
    const waitMs = waitMsOf(flags)
    await afterStart(desk, await desk.redrives.start(id), flags.watch, waitMs)
  })

export const watchCommand = redriveCommand(
  'watch <id>',
  'Watch a redrive to its end, and tell what became of it.',
  [
    'watch d0sk3v9rkmnc73a1b2cg',
    'watch d0sk3v9rkmnc73a1b2cg --wait',
    'watch d0sk3v9rkmnc73a1b2cg --json | jq .counts',
  ],
  () => true,
)
  .adding<WatchFlags>(waitFlags)
  .help(`Ctrl-C ends the watching; the redrive goes on. A paused one is watched on until somebody resumes or
cancels it; where stdout is no terminal, a pause ends the watching.

${ENDS}`)
  .work(async (desk, id, flags) => {
    const waitMs = waitMsOf(flags)
    const redrive = await desk.redrives.read(id)
    if (redrive.state === 'planned' || redrive.state === 'planning') {
      throw failed(
        `it was not started; start it with: bartleby redrive start ${redrive.id} --watch${desk.place}`,
      )
    }
    await seeThrough(desk, redrive, waitMs)
  })

/** Watches it, or says where to look. */
export async function afterStart(
  desk: Desk,
  started: RedriveDetail,
  watch: boolean | undefined,
  waitMs: number | null,
): Promise<void> {
  const { terminal, json, place, goesOn, print } = desk
  if (watch || waitMs !== null || isOver(started.state)) return seeThrough(desk, started, waitMs)
  print(started, ({ sentence }) => printable(sentence))
  if (!json) terminal.err(`started; ${goesOn}. Watch it with: bartleby redrive watch ${started.id}${place}`)
}

/** Watches a redrive to its end, reports, and fails unless it succeeded. */
export async function seeThrough(desk: Desk, started: RedriveDetail, waitMs: number | null): Promise<void> {
  const { place, goesOn, print } = desk
  const { redrive, left } = await follow(desk, started, waitMs)
  print(redrive, accountOf)
  const { id, state } = redrive
  if (left) {
    throw failed(
      `left before its end; ${goesOn}. Look again with: bartleby redrive watch ${id}${place}\n  end it with: bartleby redrive cancel ${id}${place}`,
    )
  }
  const failure = await failureOf(desk, redrive, waitMs !== null)
  if (failure === null) return
  const next = state === 'paused' ? `; go on with: bartleby redrive resume ${id}${place}` : ''
  throw failed(`${failure}${next}`)
}

const SHOWN_FAILURES = 5

/** Why a redrive that is over or paused is no success; null when it is one. */
async function failureOf(
  { redrives }: Desk,
  { id, state, note, counts }: RedriveDetail,
  waited: boolean,
): Promise<string | null> {
  const failures = async () =>
    (await redrives.letters(id, { outcome: 'failed', limit: SHOWN_FAILURES })).items
  const reasons = [
    ...(state === 'done'
      ? []
      : [`it ${state === 'paused' ? 'is' : 'was'} ${state}${note === null ? '' : `: ${printable(note)}`}`]),
    ...(counts.failed === 0 ? [] : [failuresText(counts.failed, await failures())]),
    ...(counts.returned === 0 ? [] : [`${grouped(counts.returned)} returned`]),
    ...(waited && state === 'done' && counts.unconfirmed > 0 ? ['not all outcomes are known yet'] : []),
  ]
  return reasons.length === 0 ? null : reasons.join('; ')
}

/** `6 failed:` and the first, with their reasons. */
export function failuresText(failed: number, first: readonly RedriveLetter[]): string {
  const shown = first.map(
    ({ engine, rowKey, reason, detail }) =>
      `\n  ${printable(`${engine ?? '-'} ${rowKey ?? '-'}: ${detail ?? reasonWords(reason ?? '')}`)}`,
  )
  const more = failed > first.length ? `\n  … and ${grouped(failed - first.length)} more` : ''
  return `${grouped(failed)} failed:${shown.join('')}${more}`
}

interface Followed {
  readonly redrive: RedriveDetail
  /** The watcher left before the end. */
  readonly left: boolean
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 1_000
const LOOK_TIMEOUT_MS = 10_000

/**
 * Watches from `first` on, and waits at most `waitMs` for outcomes after the end. Without a terminal a pause ends it
 * too: a script would wait for ever. Ctrl-C ends the watching only.
 */
async function follow(desk: Desk, first: RedriveDetail, waitMs: number | null): Promise<Followed> {
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

/** Milliseconds left. */
function timeLeft(
  { state, action, counts }: RedriveDetail,
  waitMs: number | null,
  overSinceMs: number | null,
): number {
  if (overSinceMs === null) return Number.POSITIVE_INFINITY
  // A stopped redrive has failed, whatever is heard of its letters.
  const isKnown = !isSending(action) || counts.unconfirmed === 0 || state !== 'done'
  return waitMs === null || isKnown ? 0 : overSinceMs + waitMs - performance.now()
}

/** The redrive, or why there is no answer: a restarted server goes on with it. */
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
  /** No answer, because of this. */
  trouble(reason: string): void
  end(): void
}

const SILENT: Display = { show: () => {}, trouble: () => {}, end: () => {} }

/** `json` has no display. `nowMs` is replaced in tests. */
export function displayOn(
  terminal: Terminal,
  { json = false }: { readonly json?: boolean },
  nowMs: () => number = () => performance.now(),
): Display {
  if (json) return SILENT
  return terminal.screen === undefined ? lines(terminal, nowMs) : inPlace(terminal, terminal.screen)
}

/** Changed numbers are printed this often, a new state at once. */
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

/** Up to the first line of the last picture, and everything below erased. */
const over = (rows: number): string => `${rows === 0 ? '' : `\u001b[${rows}A`}\r\u001b[J`
// Without cursor or line wrap: rows are counted.
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
