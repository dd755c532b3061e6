/** A Bartleby server in a process of its own, and a `fetch` with kept connections to call it with. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Pool } from 'undici'
import type { Fetch } from '../../src/client/index.ts'
import { freePort } from '../../test/world/postgres.ts'

/** What `npm start` gives Node, and what the command then sets by itself, for processes that stand for a server. */
export const serverNodeFlags = ['--max-semi-space-size=4', '--heap-growing-percent=30'] as const

const program = join(import.meta.dirname, '../../bin/bartleby.js')
const startTimeoutMs = 20_000

export interface BartlebyServer {
  readonly url: string
  readonly pid: number | undefined
  /** The platform's own costs more per call than the server does. */
  readonly fetch: Fetch
  stop(): Promise<void>
}

/** Serves a store, with the settings of a configuration file if there is one; resolves once the server is healthy. */
export async function startBartleby(
  store: string,
  { config }: { readonly config?: string } = {},
): Promise<BartlebyServer> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const flags = [
    '--port',
    String(port),
    '--store',
    store,
    ...(config === undefined ? [] : ['--config', config]),
  ]
  const server = spawn(process.execPath, [...serverNodeFlags, program, 'serve', ...flags], {
    env: { ...process.env, BARTLEBY_LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  // The server ends with this process, also when a run fails.
  process.once('exit', () => server.kill('SIGTERM'))
  const exited = new Promise((resolve) => server.once('exit', resolve))
  await healthy(url)
  const pool = new Pool(url, { connections: 32 })
  return {
    url,
    pid: server.pid,
    fetch: (address, { method, headers, body, signal }) =>
      new Promise((resolve, reject) => {
        let status = 0
        const chunks: Buffer[] = []
        let abort = () => {}
        // Not by way of `request`, which makes a stream of every answer: 63 µs a call, and 30 µs so.
        pool.dispatch(
          // The client calls with no others.
          {
            path: address.slice(url.length),
            method: method as 'GET' | 'POST' | 'PATCH',
            headers,
            body: body ?? null,
          },
          {
            onRequestStart(controller) {
              abort = () => controller.abort(new Error('aborted'))
              if (signal.aborted) abort()
              else signal.addEventListener('abort', abort)
            },
            onResponseStart(_, statusCode) {
              status = statusCode
            },
            onResponseData(_, chunk) {
              chunks.push(chunk)
            },
            onResponseEnd() {
              signal.removeEventListener('abort', abort)
              resolve({ status, text: async () => Buffer.concat(chunks).toString() })
            },
            onResponseError(_, error) {
              signal.removeEventListener('abort', abort)
              reject(error)
            },
          },
        )
      }),
    async stop() {
      await pool.close()
      server.kill('SIGTERM')
      await exited
    },
  }
}

async function healthy(url: string): Promise<void> {
  const limitMs = performance.now() + startTimeoutMs
  const answers = async () => (await fetch(`${url}/health`)).ok
  while (!(await answers().catch(() => false))) {
    if (performance.now() > limitMs) throw new Error(`no healthy server within ${startTimeoutMs} ms`)
    await setTimeout(25)
  }
}
