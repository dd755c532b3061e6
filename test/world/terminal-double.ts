/** Runs a command in a world of its own and tells what it printed. */
import { Readable } from 'node:stream'
import { run } from '../../src/cli/main.ts'
import type { Screen, Terminal } from '../../src/terminal/terminal.ts'

export interface World {
  readonly env?: Record<string, string>
  readonly stdin?: string | Uint8Array
  readonly isTTY?: boolean
  /** What the person types when asked. */
  readonly answer?: string | ((question: string) => string)
  /** Gets what is drawn over the last line; without it stderr is no terminal. */
  readonly redraw?: (text: string) => void
  /** stdout is this terminal; without it, it is none. */
  readonly screen?: Screen
  /** Gets the listener to Ctrl-C. */
  readonly onInterrupt?: (listener: () => void) => void
}

export interface Printed {
  readonly code: number
  readonly out: string
  readonly err: string
  /** What was put on stdout as bytes; undefined when nothing was. */
  readonly bytes: Buffer | undefined
}

/** Runs `bartleby <args>`. */
export async function bartleby(args: readonly string[], world: World = {}): Promise<Printed> {
  const { env = {}, stdin = '', isTTY = false, answer = '', redraw, screen, onInterrupt } = world
  const out: string[] = []
  const err: string[] = []
  const bytes: Uint8Array[] = []
  const terminal: Terminal = {
    out: (text) => void out.push(text),
    err: (text) => void err.push(text),
    write: async (part) => void bytes.push(part),
    env,
    stdin: Object.assign(Readable.from([Buffer.from(stdin)]), { isTTY }),
    screen,
    redraw,
    ask: async (question) => (typeof answer === 'string' ? answer : answer(question)),
    onInterrupt: (listener) => {
      onInterrupt?.(listener)
      return () => {}
    },
  }
  const code = await run(args, terminal)
  return {
    code,
    out: out.join('\n'),
    err: err.join('\n'),
    bytes: bytes.length === 0 ? undefined : Buffer.concat(bytes),
  }
}
