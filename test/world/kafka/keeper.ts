/**
 * Runs a Kafka broker for as long as its own standard input stays open, and starts, stops and freezes it as the lines there say. The
 * test run holds the other end: however it dies, even killed, the pipe closes, and this process ends the broker and removes its files.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'

/** What the keeper is told, as JSON in its first argument. */
export interface KeeperOrder {
  readonly args: readonly string[]
  /** Removed at the end, with everything in it. */
  readonly folder: string
}

/** What it is told by lines on standard input; each is answered with one line of JSON. */
export type KeeperCommand = 'start' | 'kill' | 'freeze' | 'thaw'
export type KeeperAnswer = { readonly done: KeeperCommand } | { readonly failed: string }

const { args, folder }: KeeperOrder = JSON.parse(process.argv[2] ?? '')
let broker: ChildProcess | null = null

const commands: Readonly<Record<KeeperCommand, () => Promise<void>>> = { start, kill, freeze, thaw }

// A Ctrl-C in the terminal reaches this process too; the end of the test run is what counts.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

for await (const line of createInterface({ input: process.stdin })) {
  const command = line as KeeperCommand
  try {
    await commands[command]()
    answer({ done: command })
  } catch (error) {
    answer({ failed: String(error) })
  }
}
await kill()
await rm(folder, { recursive: true, force: true })
process.exit()

function answer(what: KeeperAnswer): void {
  process.stdout.write(`${JSON.stringify(what)}\n`)
}

async function start(): Promise<void> {
  const java = spawn('java', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  broker = java
  await new Promise<void>((resolve, reject) => {
    let log = ''
    java.stderr.on('data', (chunk: Buffer) => {
      if (log.length < 10_000) log += chunk
      if (log.includes('Kafka Server started')) resolve()
    })
    java.once('error', reject)
    java.once('exit', (code) => reject(new Error(`the broker ended with code ${code}: ${log}`)))
  })
}

/** Its files are thrown away at the end, and a broker that is killed is what tests want: nothing is gained by a clean stop. */
async function kill(): Promise<void> {
  const java = broker
  broker = null
  if (java === null || java.exitCode !== null || java.signalCode !== null) return
  const ended = once(java, 'exit')
  java.kill('SIGKILL')
  await ended
}

async function freeze(): Promise<void> {
  broker?.kill('SIGSTOP')
}

async function thaw(): Promise<void> {
  broker?.kill('SIGCONT')
}
