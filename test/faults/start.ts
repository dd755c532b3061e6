/** Starts of the server that are expected to fail. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Root may write everywhere; without these capabilities it is bound by the file's mode like anybody else. */
const BOUND_BY_MODES = ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--inh-caps=-all']

/** Runs `bartleby serve` on `store` until it ends; with `asAnybody` file modes count, also for root. */
export async function serveUntilEnd(store: string, options: { readonly asAnybody?: boolean } = {}) {
  const prefix = options.asAnybody === true && process.getuid?.() === 0 ? BOUND_BY_MODES : []
  const [program = '', ...args] = [
    ...prefix,
    'node_modules/.bin/node',
    'bin/bartleby.js',
    'serve',
    '--port',
    '0',
    '--store',
    store,
  ]
  const child = spawn(program, args, {
    cwd: root,
    env: { ...process.env, BARTLEBY_LOG_LEVEL: 'silent' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), 20_000)
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
