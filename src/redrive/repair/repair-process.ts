/**
 * The process in which letters are repaired: their thread, and this one, which never waits for it and ends both when the time of a
 * letter is up. A thread of the server would not do: an expression that asks for too much memory at once, such as
 * $pad("", 500000000), makes V8 end the whole process.
 *
 * It ends with the server, whatever the thread is doing: the channel between them closes then.
 */
import { writeFileSync } from 'node:fs'
import { extname } from 'node:path'
import type { EventLoopUtilization } from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'
import { LETTER_MS, OUT_OF_MEMORY } from './repair-bounds.ts'
// Types alone; by these the code of the thread is part of the build too.
import type { RepairRequest, ThreadAnswer } from './repair-thread.ts'

/** What the thread says, or that the letter after the last one took too long: nothing more comes then. */
export type RepairAnswer = ThreadAnswer | { readonly kind: 'too long' }

/** What the thread may hold: a payload of some megabytes several times over. */
const LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 }

/** From the first second on. */
const LOOK_EVERY_MS = 50
/** Whatever a machine is busy with. */
const MOST_WAIT_MS = 10 * LETTER_MS
/** A thread that is not woken for so long waits for nothing; on a busy machine one that has a letter may sleep for seconds. */
const MOST_IDLE_MS = 5 * LETTER_MS

// Signals for the server and all that belongs to it are for the server: letters that are under way must not be refused for them.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.on('disconnect', () => process.exit())

try {
  // Should the machine run out of memory, it is this process that Linux takes first.
  writeFileSync('/proc/self/oom_score_adj', '1000')
  // A process that asks for too much is ended by V8, and where cores are kept all its memory, with the payloads, would be written to
  // disk: over a gigabyte, and seconds, for every letter.
  writeFileSync('/proc/self/coredump_filter', '0')
} catch {
  // Another system.
}

/** Of the letter that is under way. */
interface Watch {
  readonly beganMs: number
  readonly cpu: NodeJS.CpuUsage
  readonly loop: EventLoopUtilization
}

let watch: Watch | null = null
let alarm: NodeJS.Timeout | undefined

function expectLetter(): void {
  watch = {
    beganMs: performance.now(),
    cpu: process.cpuUsage(),
    loop: thread.performance.eventLoopUtilization(),
  }
  clearTimeout(alarm)
  alarm = setTimeout(look, LETTER_MS)
}

/** Where the machine is busy the answer may lie beside the alarm: it is read first. */
function look(): void {
  const before = watch
  setImmediate(() => {
    if (before === null || before !== watch) return
    // What was said before must have left the process when it ends.
    if (isTimeUp(before)) tell({ kind: 'too long' }, () => process.exit())
    else alarm = setTimeout(look, LOOK_EVERY_MS)
  })
}

/** A letter has a second of work, not of waiting for a machine that is busy; and one that waits for nothing never ends. */
function isTimeUp({ beganMs, cpu, loop }: Watch): boolean {
  const { user, system } = process.cpuUsage(cpu)
  const { idle } = thread.performance.eventLoopUtilization(loop)
  const isWorkedOut = (user + system) / 1_000 >= LETTER_MS
  const isWaiting = idle >= MOST_IDLE_MS
  return isWorkedOut || isWaiting || performance.now() - beganMs >= MOST_WAIT_MS
}

const tell = (answer: RepairAnswer, sent = () => {}) => process.send?.(answer, sent)

// From the sources it is TypeScript, in the package JavaScript.
const code = new URL(`./repair-thread${extname(import.meta.filename)}`, import.meta.url)
const thread = new Worker(code, { name: 'repairs', resourceLimits: LIMITS })
thread.on('message', (answer: ThreadAnswer) => {
  watch = null
  clearTimeout(alarm)
  if (answer.kind === 'letter') expectLetter()
  tell(answer)
})
thread.on('error', (error) => {
  const isMemory = error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
  process.exit(isMemory ? OUT_OF_MEMORY : 1)
})
thread.on('exit', () => process.exit(1))
process.on('message', (request: RepairRequest) => {
  expectLetter()
  thread.postMessage(request)
})
