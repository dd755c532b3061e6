/** For tests only: runs a command in a world of its own and tells what it printed. */
import { Readable } from 'node:stream'
import { run } from './main.ts'
import type { Terminal } from './terminal.ts'

export interface World {
  readonly env?: Record<string, string>
  readonly stdin?: string | Uint8Array
  readonly isTTY?: boolean
  /** What the person types when asked. */
  readonly answer?: string
  /** Gets what is drawn over the last line; without it stderr is no terminal. */
  readonly redraw?: (text: string) => void
}

/** Runs `bartleby <args>`. */
export async function bartleby(
  args: readonly string[],
  { env = {}, stdin = '', isTTY = false, answer = '', redraw }: World = {},
): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const terminal: Terminal = {
    out: (text) => void out.push(text),
    err: (text) => void err.push(text),
    env,
    stdin: Object.assign(Readable.from([Buffer.from(stdin)]), { isTTY }),
    redraw,
    ask: async () => answer,
  }
  const code = await run(args, terminal)
  return { code, out: out.join('\n'), err: err.join('\n') }
}
