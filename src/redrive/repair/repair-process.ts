/**
 * The process in which letters are repaired: a thread does the work, and this one ends both when a letter's time is up. A thread of the
 * server would not do: an expression that asks for too much memory at once, such as $pad("", 500000000), makes V8 end the whole process.
 * It ends with the server, whatever the thread is doing, because the channel between them closes.
 */
import { writeFileSync } from 'node:fs'
import { extname } from 'node:path'
import type { EventLoopUtilization } from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'
import { LETTER_MS, OUT_OF_MEMORY } from './repair-bounds.ts'
// Types alone; the import makes the thread's code part of the build.
import type { RepairRequest, ThreadAnswer } from './repair-thread.ts'

/** 'too long': the letter after the last answer; nothing more comes. */
export type RepairAnswer = ThreadAnswer | { readonly kind: 'too long' }

/** A payload of some megabytes, several times over. */
const LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 }

/** After the first second. */
const LOOK_EVERY_MS = 50
/** However busy the machine is. */
const MOST_WAIT_MS = 10 * LETTER_MS
/** A thread idle for so long waits for nothing; on a busy machine one with a letter may sleep for seconds. */
const MOST_IDLE_MS = 5 * LETTER_MS

// The server alone answers signals: letters under way must not be refused for them.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.on('disconnect', () => process.exit())

try {
  // When memory runs out, Linux takes this process first.
  writeFileSync('/proc/self/oom_score_adj', '1000')
  // V8 ends a process that asks for too much; a core with its payloads would be over a gigabyte, and take seconds for every letter.
  writeFileSync('/proc/self/coredump_filter', '0')
} catch {
  // Another system than Linux.
}

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

/** On a busy machine the answer may be queued beside the alarm: it is read first. */
function look(): void {
  const before = watch
  setImmediate(() => {
    if (before === null || before !== watch) return
    // Earlier answers must leave before the process ends.
    if (isTimeUp(before)) answer({ kind: 'too long' }, () => process.exit())
    else alarm = setTimeout(look, LOOK_EVERY_MS)
  })
}

/** A letter has a second of work, not of waiting for a busy machine; one that waits for nothing never ends. */
function isTimeUp({ beganMs, cpu, loop }: Watch): boolean {
  const { user, system } = process.cpuUsage(cpu)
  const { idle } = thread.performance.eventLoopUtilization(loop)
  const isWorkedOut = (user + system) / 1_000 >= LETTER_MS
  const isWaiting = idle >= MOST_IDLE_MS
  return isWorkedOut || isWaiting || performance.now() - beganMs >= MOST_WAIT_MS
}

const answer = (message: RepairAnswer, sent = () => {}) => process.send?.(message, sent)

// TypeScript in the sources, JavaScript in the package.
const code = new URL(`./repair-thread${extname(import.meta.filename)}`, import.meta.url)
const thread = new Worker(code, { name: 'repairs', resourceLimits: LIMITS })
thread.on('message', (message: ThreadAnswer) => {
  watch = null
  clearTimeout(alarm)
  if (message.kind === 'letter') expectLetter()
  answer(message)
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
