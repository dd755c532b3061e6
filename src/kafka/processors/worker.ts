/**
 * The thread in which processors run. Whatever they do to it, an endless loop, `process.exit`, a heap that only grows, the server ends
 * this thread and starts another.
 */
import { format } from 'node:util'
import { parentPort, workerData } from 'node:worker_threads'
import { describeError } from '../../core/thrown.ts'
import type { Decision } from '../ports.ts'
import type { FromThread, SentEvent, ThreadStart, ToThread } from './calls.ts'
import { deadEvent } from './dead-event.ts'
import { type LoadedEntry, loadModules } from './modules.ts'
import { decisionOf } from './result.ts'

const MOST_LINES = 100
const MOST_LINE_CHARACTERS = 1_000
const MOST_MESSAGE_CHARACTERS = 2_000

if (parentPort === null) throw new Error('processors run in a thread')
const port = parentPort

const tell = (message: FromThread): void => port.postMessage(message)

/** Lines that may still be written in this run. */
let linesLeft = MOST_LINES

function say(...parts: readonly unknown[]): void {
  if (linesLeft === 0) return
  linesLeft -= 1
  const text =
    linesLeft === 0 ? 'and more, which is left out' : shortened(textOf(parts), MOST_LINE_CHARACTERS)
  tell({ kind: 'said', text })
}

/** What is thrown while something is shown must not end the run. */
function textOf(parts: readonly unknown[]): string {
  try {
    return format(...parts)
  } catch {
    return 'something that cannot be shown'
  }
}

const shortened = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most)}…` : text

// Standard output belongs to the command that runs the server.
for (const name of ['debug', 'error', 'info', 'log', 'warn'] as const) console[name] = say

const failed = (thrown: unknown): Decision => ({
  action: 'failed',
  message: shortened(describeError(thrown).errorMessage, MOST_MESSAGE_CHARACTERS),
})

/** The first of these entries that is for the event. */
function entryFor(candidates: readonly LoadedEntry[], event: SentEvent): LoadedEntry | null {
  for (const entry of candidates) {
    if (entry.when === null) return entry
    const fits: unknown = entry.when(deadEvent(event))
    if (typeof fits !== 'boolean') throw new TypeError(`'when' returned neither true nor false`)
    if (fits) return entry
  }
  return null
}

async function decide(
  candidates: readonly LoadedEntry[],
  event: SentEvent,
  signal: AbortSignal,
): Promise<Decision> {
  try {
    const entry = entryFor(candidates, event)
    if (entry === null) return { action: 'publish', change: {} }
    const { run } = entry
    const result: unknown = await run(
      deadEvent(event),
      Object.freeze({ log: (message: unknown) => say(message), signal }),
    )
    return decisionOf(result)
  } catch (error) {
    return failed(error)
  }
}

function serve(entries: readonly LoadedEntry[]): void {
  let time = new AbortController()
  const run = async (asked: readonly number[], event: SentEvent): Promise<void> => {
    linesLeft = MOST_LINES
    time = new AbortController()
    const candidates = asked.flatMap((index) => entries[index] ?? [])
    tell({ kind: 'decided', decision: await decide(candidates, event, time.signal) })
    // Promises that the run left behind fail before the thread is given the next one.
    setImmediate(() => tell({ kind: 'ready' }))
  }
  port.on('message', (message: ToThread) => {
    if (message.kind === 'abort') time.abort(new Error('the time for the processor is up'))
    else void run(message.entries, message.event)
  })
}

// As the server gave it. Not awaited here: Node would complain on standard error of modules that are never done loading.
void loadModules((workerData as ThreadStart).entries).then((loaded) => {
  if (loaded.entries === null) {
    tell({ kind: 'broken', problems: loaded.problems })
    return
  }
  serve(loaded.entries)
  tell({ kind: 'loaded', whens: loaded.entries.map(({ when }) => when !== null) })
})
