/** What a command may touch of the world outside, so that tests can give it another one. */

import type { EventEmitter } from 'node:events'
import { createInterface } from 'node:readline/promises'
import type { Readable } from 'node:stream'

export interface Terminal {
  out(text: string): void
  err(text: string): void
  /** Puts bytes on stdout as they are; resolves when it takes more. */
  write(bytes: Uint8Array): Promise<void>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdin: Readable & { readonly isTTY?: boolean }
  /** stdout where it is a terminal. */
  readonly screen?: Screen | undefined
  /** Puts `text` in place of the last line on stderr; left out where stderr is no terminal. */
  readonly redraw?: ((text: string) => void) | undefined
  /** Asks a person; only where stdin is a terminal. */
  ask(question: string): Promise<string>
  /** Calls `listener` at Ctrl-C or SIGTERM instead of ending; a second one ends the process. Gives what ends that. */
  onInterrupt(listener: () => void): () => void
}

/** A terminal that can be drawn on. */
export interface Screen {
  readonly columns: number
  readonly rows: number
  /** Sends text with its control sequences. */
  draw(text: string): void
  /** Calls `listener` when columns or rows have changed; gives what ends that. */
  onResize(listener: () => void): () => void
  /** Calls `listener` with each key that is pressed, instead of showing it; gives what ends that. */
  onKey(listener: (key: string) => void): () => void
}

/** The terminal, environment and pipes of this process. */
export const processTerminal: Terminal = {
  out: (text) => void process.stdout.write(`${text}\n`),
  err: (text) => void process.stderr.write(`${text}\n`),
  write: (bytes) =>
    new Promise((resolve, reject) =>
      process.stdout.write(bytes, (error) => (error ? reject(error) : resolve())),
    ),
  env: process.env,
  stdin: process.stdin,
  screen: process.stdout.isTTY ? processScreen() : undefined,
  redraw: process.stderr.isTTY
    ? // Back to the first column, and everything to the right of it erased.
      (text) => void process.stderr.write(`\r\u001b[K${text}`)
    : undefined,
  async ask(question) {
    const lines = createInterface({ input: process.stdin, output: process.stderr })
    try {
      return await lines.question(question)
    } finally {
      lines.close()
    }
  },
  onInterrupt: (listener) => onStopSignal(listener),
}

const DEFAULT_COLUMNS = 80
const DEFAULT_ROWS = 24

function processScreen(): Screen {
  const { stdin, stdout } = process
  return {
    get columns() {
      return stdout.columns || DEFAULT_COLUMNS
    },
    get rows() {
      return stdout.rows || DEFAULT_ROWS
    },
    draw: (text) => void stdout.write(text),
    onResize(listener) {
      stdout.on('resize', listener)
      return () => void stdout.off('resize', listener)
    },
    onKey(listener) {
      if (!stdin.isTTY) return () => {}
      const pressed = (bytes: Buffer) => listener(bytes.toString('utf8'))
      // Keys arrive one by one and are not shown; Ctrl-C arrives as a key too.
      stdin.setRawMode(true).resume().on('data', pressed)
      return () => void stdin.off('data', pressed).setRawMode(false).pause()
    },
  }
}

/** Everything that stdin has, as bytes. */
export async function readAll(stdin: Readable): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of stdin) chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
  return Buffer.concat(chunks)
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/**
 * Control characters made harmless: what is printed may come from anybody who can produce an item. So are those that
 * end a line, or turn the direction of what follows and make it read as something else.
 */
export const printable = (text: string): string =>
  text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, (character) => {
    const code = character.charCodeAt(0).toString(16)
    return (
      SHORT_ESCAPES[character] ??
      (code.length <= 2 ? `\\x${code.padStart(2, '0')}` : `\\u${code.padStart(4, '0')}`)
    )
  })

/**
 * Makes a text look as its name says: on terminals only and never with NO_COLOR, so that what is piped or kept stays plain text.
 */
export interface Style {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly red: (text: string) => string
  readonly green: (text: string) => string
  readonly yellow: (text: string) => string
  readonly cyan: (text: string) => string
}

const wrapped =
  (start: number, end: number) =>
  (text: string): string =>
    text === '' ? '' : `\u001b[${start}m${text}\u001b[${end}m`

const COLOURED: Style = {
  bold: wrapped(1, 22),
  dim: wrapped(2, 22),
  red: wrapped(31, 39),
  green: wrapped(32, 39),
  yellow: wrapped(33, 39),
  cyan: wrapped(36, 39),
}

const asIs = (text: string): string => text

export const PLAIN: Style = { bold: asIs, dim: asIs, red: asIs, green: asIs, yellow: asIs, cyan: asIs }

/** The style that stdout of this terminal can show. An empty NO_COLOR says nothing, as its convention has it. */
export const styleOf = ({ screen, env }: Pick<Terminal, 'screen' | 'env'>): Style =>
  screen !== undefined && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb' ? COLOURED : PLAIN

/** A status in its colour. */
export function statusIn(style: Style, status: string, text = status): string {
  if (status === 'Pending' || status === 'Failed') return style.yellow(text)
  return status === 'Expired' ? style.dim(text) : style.green(text)
}

/** The state of a run or of a redrive in its colour. */
export function stateIn(style: Style, state: string, text = state): string {
  if (state === 'done') return style.green(text)
  if (state === 'failed' || state === 'stopped' || state === 'cancelled') return style.red(text)
  return state === 'paused' ? style.yellow(text) : style.cyan(text)
}

/*
 * SIGINT and SIGTERM: the first asks for a stop in good order, a second one ends the process at once, because
 * an operator who asks twice means it. So does a stop that takes too long.
 */

/** After the first signal everything must have ended within this time. */
const STOP_LIMIT_MS = 9_500

/**
 * What follows this closely is the same request: Ctrl-C reaches npm, its shell and the server alike, and npm
 * passes its own signal on to the server as well.
 */
const SAME_REQUEST_MS = 500

/** What a shell shows for a program that died of the signal. */
const SIGNAL_EXIT = { SIGINT: 130, SIGTERM: 143 } as const

type StopSignal = keyof typeof SIGNAL_EXIT

const SIGNALS: readonly StopSignal[] = ['SIGINT', 'SIGTERM']

const STOP_TOO_SLOW_EXIT = 1

type Signals = Pick<EventEmitter, 'on' | 'off'>

/** Calls `first` at the first signal; another one that is no copy of it ends the process. Gives what ends the listening. */
export function onStopSignal(
  first: () => void,
  signals: Signals = process,
  exit: (code: number) => void = process.exit,
): () => void {
  let firstAtMs: number | undefined
  const listen = (signal: StopSignal) => {
    const nowMs = performance.now()
    if (firstAtMs === undefined) {
      firstAtMs = nowMs
      first()
    } else if (nowMs - firstAtMs > SAME_REQUEST_MS) {
      exit(SIGNAL_EXIT[signal])
    }
  }
  for (const signal of SIGNALS) signals.on(signal, listen)
  return () => {
    for (const signal of SIGNALS) signals.off(signal, listen)
  }
}

/**
 * Resolves at the first signal. Listening begins at once, so that a signal while the server still starts is
 * not lost, and never ends: a copy of the signal may arrive while the process is about to end.
 */
export function listenForStop(
  signals: Signals = process,
  exit: (code: number) => void = process.exit,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = () => {
    setTimeout(() => exit(STOP_TOO_SLOW_EXIT), STOP_LIMIT_MS).unref()
    resolve()
  }
  onStopSignal(stop, signals, exit)
  return promise
}
