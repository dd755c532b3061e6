/** The outside world of a command, so that tests can give it another. */

import type { EventEmitter } from 'node:events'
import { createInterface } from 'node:readline/promises'
import type { Readable } from 'node:stream'
import { variableOf } from '../core/settings/environment.ts'

export interface Terminal {
  out(text: string): void
  err(text: string): void
  /** Raw bytes to stdout; resolves when it takes more. */
  write(bytes: Uint8Array): Promise<void>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdin: Readable & { readonly isTTY?: boolean }
  /** stdout where it is a terminal. */
  readonly screen?: Screen | undefined
  /** Replaces the last line on stderr; left out where that is no terminal. */
  readonly redraw?: ((text: string) => void) | undefined
  /** Asks a person; only where stdin is a terminal. */
  ask(question: string): Promise<string>
  /** Calls `listener` at Ctrl-C or SIGTERM; a second one ends the process. Gives what ends the listening. */
  onInterrupt(listener: () => void): () => void
}

export interface Screen {
  readonly columns: number
  readonly rows: number
  draw(text: string): void
  /** Gives what ends the listening. */
  onResize(listener: () => void): () => void
  /** Keys are not shown. Gives what ends the listening. */
  onKey(listener: (key: string) => void): () => void
}

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
      // In raw mode Ctrl-C arrives as a key too.
      stdin.setRawMode(true).resume().on('data', pressed)
      return () => void stdin.off('data', pressed).setRawMode(false).pause()
    },
  }
}

export async function readAll(stdin: Readable): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of stdin) chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
  return Buffer.concat(chunks)
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/**
 * Control characters made harmless: anybody who can produce an item decides what is printed. So are characters that end
 * a line or turn its direction.
 */
export const printable = (text: string): string =>
  text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, (character) => {
    const code = character.charCodeAt(0).toString(16)
    return (
      SHORT_ESCAPES[character] ??
      (code.length <= 2 ? `\\x${code.padStart(2, '0')}` : `\\u${code.padStart(4, '0')}`)
    )
  })

/** Colours on terminals only, and never with NO_COLOR. */
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

/** An empty NO_COLOR says nothing, by its convention. */
export const styleOf = ({ screen, env }: Pick<Terminal, 'screen' | 'env'>): Style =>
  screen !== undefined && variableOf(env, 'NO_COLOR') === undefined && env.TERM !== 'dumb' ? COLOURED : PLAIN

export function statusIn(style: Style, status: string, text = status): string {
  if (status === 'Pending' || status === 'Failed') return style.yellow(text)
  return status === 'Expired' ? style.dim(text) : style.green(text)
}

export function stateIn(style: Style, state: string, text = state): string {
  if (state === 'done') return style.green(text)
  if (state === 'failed' || state === 'stopped' || state === 'cancelled') return style.red(text)
  return state === 'paused' ? style.yellow(text) : style.cyan(text)
}

/*
 * SIGINT and SIGTERM: the first asks for a stop in good order, a second one ends the process at once, because
 * an operator who asks twice means it. So does a stop that takes too long.
 */

/** A stop that takes longer is cut short. */
const STOP_LIMIT_MS = 9_500

/** Copies of one request: Ctrl-C reaches npm, its shell and the server alike, and npm passes its own signal on. */
const SAME_REQUEST_MS = 500

/** A shell's codes for a program that died of the signal. */
const SIGNAL_EXIT = { SIGINT: 130, SIGTERM: 143 } as const

type StopSignal = keyof typeof SIGNAL_EXIT

const SIGNALS: readonly StopSignal[] = ['SIGINT', 'SIGTERM']

const STOP_TOO_SLOW_EXIT = 1

type Signals = Pick<EventEmitter, 'on' | 'off'>

/** Another signal that is no copy of the first ends the process. Gives what ends the listening. */
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
 * Resolves at the first signal. Listening begins at once, so that a signal during the start is not lost, and never
 * ends: a copy may arrive while the process ends.
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
