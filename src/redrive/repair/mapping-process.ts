/**
 * The process in which mappings run: their thread, and this one, which never waits for it. A thread of the server would not do: an
 * expression that asks for too much memory at once, such as $pad("", 500000000), makes V8 end the whole process.
 *
 * It ends with the server, whatever the thread is doing: the channel between them closes then.
 */
import { writeFileSync } from 'node:fs'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { MappingAnswer, MappingRequest } from './mapping-worker.ts'

/** What this process says by its exit code. */
export const OUT_OF_MEMORY = 12

/** What the thread may hold: a payload of some megabytes several times over. */
const LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 }

// Signals for the server and all that belongs to it are for the server: letters that are under way must not be refused for them.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.on('disconnect', () => process.exit())

try {
  // Should the machine run out of memory, it is this process that Linux takes first.
  writeFileSync('/proc/self/oom_score_adj', '1000')
} catch {
  // Another system.
}

// From the sources it is TypeScript, in the package JavaScript.
const code = new URL(`./mapping-worker${extname(import.meta.filename)}`, import.meta.url)
const thread = new Worker(code, { name: 'mappings', resourceLimits: LIMITS })
thread.on('message', (answer: MappingAnswer) => process.send?.(answer))
thread.on('error', (error) => {
  const isMemory = error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
  process.exit(isMemory ? OUT_OF_MEMORY : 1)
})
thread.on('exit', () => process.exit(1))
process.on('message', (request: MappingRequest) => thread.postMessage(request))
