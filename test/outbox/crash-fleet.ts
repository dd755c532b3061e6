/** Dispatchers in processes of their own, some of which are killed and replaced. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Random } from '../world/random.ts'
import type { DispatcherOrder } from './crash-recorder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const PROGRAM = 'test/outbox/crash-dispatcher.ts'
/** Kept between runs: compiling is a third of a start. */
const COMPILED = join(tmpdir(), 'bartleby-compiled')

interface Member {
  readonly child: ChildProcess
  readonly ready: Promise<void>
  isReady: boolean
  isKilled: boolean
  readonly ended: Promise<unknown>
}

export class Fleet {
  readonly #order: DispatcherOrder
  readonly #members = new Set<Member>()
  /** How processes ended that nobody had killed: code, signal and what they said. */
  readonly deaths: string[] = []

  constructor(order: DispatcherOrder) {
    this.#order = order
  }

  get size(): number {
    return this.#members.size
  }

  /** Starts one more; resolves when it dispatches. */
  async add(): Promise<void> {
    const child = spawn('node_modules/.bin/node', [PROGRAM, JSON.stringify(this.#order)], {
      cwd: root,
      env: { ...process.env, NODE_COMPILE_CACHE: COMPILED },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    let errors = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      errors = (errors + chunk).slice(-5_000)
    })
    // What is written to a process that was killed is lost.
    child.stdin?.on('error', () => {})
    const ended = once(child, 'close')
    const ready = Promise.race([once(child.stdout ?? child, 'data'), ended]).then(() => {
      member.isReady = true
    })
    const member: Member = { child, ready, isReady: false, isKilled: false, ended }
    this.#members.add(member)
    child.once('close', (code, signal) => {
      this.#members.delete(member)
      if (!member.isKilled && code !== 0) this.deaths.push(`${code ?? signal}: ${errors}`)
    })
    await ready
  }

  /** Kills one that dispatches, without a word. False when none does. */
  kill(random: Random): boolean {
    const ready = [...this.#members].filter(({ isReady, isKilled }) => isReady && !isKilled)
    const member = ready[random.whole(0, ready.length - 1)]
    if (member === undefined) return false
    member.isKilled = true
    member.child.kill('SIGKILL')
    return true
  }

  /** Asks all to end, and waits until they have. */
  async stop(): Promise<void> {
    const members = [...this.#members]
    for (const { child } of members) child.stdin?.end()
    await Promise.all(members.map(({ ended }) => ended))
  }

  /** Ends all that are left, however they are. */
  async discard(): Promise<void> {
    for (const member of this.#members) {
      member.isKilled = true
      member.child.kill('SIGKILL')
    }
    await Promise.all([...this.#members].map(({ ended }) => ended))
  }
}
