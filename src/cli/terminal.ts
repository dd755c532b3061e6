/** What a command may touch of the world outside, so that tests can give it another one. */
import { createInterface } from 'node:readline/promises'
import type { Readable } from 'node:stream'

export interface Terminal {
  out(text: string): void
  err(text: string): void
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdin: Readable & { readonly isTTY?: boolean }
  /** Puts `text` in place of the last line on stderr; left out where stderr is no terminal. */
  readonly redraw?: ((text: string) => void) | undefined
  /** Asks a person; only where stdin is a terminal. */
  ask(question: string): Promise<string>
}

/** The terminal, environment and pipes of this process. */
export const processTerminal: Terminal = {
  out: (text) => void process.stdout.write(`${text}\n`),
  err: (text) => void process.stderr.write(`${text}\n`),
  env: process.env,
  stdin: process.stdin,
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
}

/** Everything that stdin has, as bytes. */
export async function readAll(stdin: Readable): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of stdin) chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
  return Buffer.concat(chunks)
}

/** Rows in columns under their headings; numbers to the right. */
export function table(headings: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const cells = [headings, ...rows].map((row) => row.map((cell) => printable(String(cell))))
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const numeric = headings.map(
    (_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number'),
  )
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) =>
        numeric[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd()
  return cells.map(line).join('\n')
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Control characters made harmless: what is printed may come from anybody who can produce an item. */
export const printable = (text: string): string =>
  text.replace(
    /\p{Cc}/gu,
    (character) => SHORT_ESCAPES[character] ?? `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
