/** Starts of the server that are expected to fail. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { PATIENCE_MS } from '../world/limits.ts'
import { bartleby } from '../world/terminal-double.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Root may write everywhere; without these capabilities it is bound by the file's mode like anybody else. */
const BOUND_BY_MODES = ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--inh-caps=-all']

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

const commandOn = (store: string): readonly string[] => ['serve', '--port', '0', '--store', store]

/** Runs `bartleby serve` on `store` until it ends; with `asAnybody` file modes count, also for root. */
export function serveUntilEnd(store: string, options: { readonly asAnybody?: boolean } = {}): Promise<Ended> {
  return options.asAnybody === true ? serveBoundByModes(commandOn(store)) : serveHere(commandOn(store))
}

/** In this process, which is spared the seconds that a new one takes to start. */
async function serveHere(command: readonly string[]): Promise<Ended> {
  const signals = ['SIGINT', 'SIGTERM'] as const
  const before = signals.map((signal) => process.listeners(signal))
  try {
    const { code, out, err } = await bartleby(command, { env: { BARTLEBY_LOG_LEVEL: 'silent' } })
    return { code, out, err: `${err}\n` }
  } finally {
    // The command listens for them as long as its process lives.
    for (const [place, signal] of signals.entries()) {
      for (const listener of process.listeners(signal)) {
        if (!before[place]?.includes(listener)) process.off(signal, listener)
      }
    }
  }
}

async function serveBoundByModes(command: readonly string[]): Promise<Ended> {
  const prefix = process.getuid?.() === 0 ? BOUND_BY_MODES : []
  const [program = '', ...args] = [...prefix, 'node_modules/.bin/node', 'bin/bartleby.js', ...command]
  const child = spawn(program, args, {
    cwd: root,
    env: { ...process.env, BARTLEBY_LOG_LEVEL: 'silent' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk
    // It was not supposed to come that far.
    child.kill('SIGKILL')
  })
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk
  })
  const [code] = await once(child, 'close')
  clearTimeout(timer)
  return { code, out, err }
}

/** One line on standard error that says `what`, and exit code 1. */
export async function expectRefusal(ended: ReturnType<typeof serveUntilEnd>, what: RegExp): Promise<void> {
  const { code, out, err } = await ended
  expect(err).toMatch(/^bartleby: [^\n]+\n$/)
  expect(err).toMatch(what)
  expect(out).toBe('')
  expect(code).toBe(1)
}
