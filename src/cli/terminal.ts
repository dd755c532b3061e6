/** What a command may touch of the world outside, so that tests can give it another one. */
import { createInterface } from 'node:readline/promises'
import type { Readable } from 'node:stream'
import { onStopSignal } from './stop-signal.ts'

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
