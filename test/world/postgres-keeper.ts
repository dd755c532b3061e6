/**
 * Runs PostgreSQL for as long as its own standard input stays open. The test run holds the other end: however
 * it dies, even killed, the pipe closes, and this process ends the server and removes its files.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'

/** What the keeper is told, as JSON in its first argument. */
export interface KeeperOrder {
  readonly program: string
  readonly args: readonly string[]
  readonly user: { readonly uid?: number; readonly gid?: number }
  /** Removed at the end, with everything in it. */
  readonly folder: string
}

const { program, args, user, folder }: KeeperOrder = JSON.parse(process.argv[2] ?? '')
const server = spawn(program, args, { ...user, stdio: ['ignore', 'ignore', 'inherit'] })
const ended = once(server, 'exit')

process.stdin.resume()
// A Ctrl-C in the terminal reaches this process too; the end of the test run is what counts.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

await Promise.race([once(process.stdin, 'close'), ended])
server.kill('SIGINT')
await ended
await rm(folder, { recursive: true, force: true })
process.exit()
