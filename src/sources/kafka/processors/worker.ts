/**
 * The thread in which processors run. An endless loop, `process.exit`, a growing heap: the server ends this thread and starts another. What
 * is not exactly a result is a failure, never a discard: an unknown key was meant to do something, and its event would go out wrong without
 * a trace.
 */
import { isUtf8 } from 'node:buffer'
import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { format } from 'node:util'
import { parentPort, workerData } from 'node:worker_threads'
import { storedText } from '../../../core/content.ts'
import { isRecord } from '../../../core/settings/given.ts'
import { describeError } from '../../../core/thrown.ts'
import { readJson, writeJson } from '../wire/json.ts'
import type { DeadEvent, Processor, When } from './processor.ts'
import type { Change, Decision } from './processors.ts'
import type { FromThread, ModuleExport, SentEvent, ToThread } from './thread.ts'

const MOST_LINES = 100
const MOST_LINE_CHARACTERS = 1_000
const MOST_MESSAGE_CHARACTERS = 2_000
/** They stand in the history. */
const MOST_REASON_CHARACTERS = 1_000

if (parentPort === null) throw new Error('processors run in a thread')
const port = parentPort

const post = (message: FromThread): void => port.postMessage(message)

/** Of this run. */
let linesLeft = MOST_LINES

function say(...parts: readonly unknown[]): void {
  if (linesLeft === 0) return
  linesLeft -= 1
  const text =
    linesLeft === 0 ? 'and more, which is left out' : shortened(textOf(parts), MOST_LINE_CHARACTERS)
  post({ kind: 'said', text })
}

/** A throw while something is shown must not end the run. */
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
    post({ kind: 'decided', decision: await decide(candidates, event, time.signal) })
    // Promises that the run left behind fail before the next run.
    setImmediate(() => post({ kind: 'ready' }))
  }
  port.on('message', (message: ToThread) => {
    if (message.kind === 'abort') time.abort(new Error('the time for the processor is up'))
    else void run(message.entries, message.event)
  })
}

/** A fresh event for each function, frozen all the way down. Bytes cannot be frozen, and are copies. */
function deadEvent(sent: SentEvent): DeadEvent {
  const { publishedKey, timestampMs, rawKey, rawValue, headers, ...rest } = sent
  return frozen({
    ...rest,
    position: { ...rest.position },
    exception: { ...rest.exception },
    reasons: [...rest.reasons],
    warnings: [...rest.warnings],
    key: publishedKey !== null && isUtf8(publishedKey) ? storedText(publishedKey) : null,
    payload: payloadOf(rawValue),
    rawKey: rawKey?.slice() ?? null,
    rawValue: rawValue?.slice() ?? null,
    headers: headers.map(({ name, value }) => ({ name, value: value?.slice() ?? null })),
    timestamp: new Date(timestampMs),
  })
}

function payloadOf(value: Uint8Array | null): unknown {
  if (value === null) return undefined
  try {
    return readJson(value)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Without recursion: payloads may be nested as deep as they like. */
function frozen<T extends object>(value: T): T {
  const open: object[] = [value]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (ArrayBuffer.isView(next)) continue
    Object.freeze(next)
    for (const inner of Object.values(next)) if (typeof inner === 'object' && inner !== null) open.push(inner)
  }
  return value
}

interface LoadedEntry {
  readonly run: Processor
  readonly when: When | null
}

type Loaded =
  | { readonly entries: readonly LoadedEntry[]; readonly problems: readonly [] }
  | { readonly entries: null; readonly problems: readonly string[] }

/** Problems go by their keys in the configuration. */
async function loadModules(given: readonly ModuleExport[]): Promise<Loaded> {
  const entries: LoadedEntry[] = []
  const problems: string[] = []
  for (const [index, one] of given.entries()) {
    const loaded = await loadEntry(one)
    if ('problem' in loaded) problems.push(`kafka.processors[${index}].${loaded.problem}`)
    else entries.push(loaded)
  }
  return problems.length > 0 ? { entries: null, problems } : { entries, problems: [] }
}

async function loadEntry(given: ModuleExport): Promise<LoadedEntry | { readonly problem: string }> {
  const { module, export: name } = given
  if (!existsSync(module)) return { problem: `module: '${module}' does not exist` }
  if (module.endsWith('.ts') && process.features.typescript === false) {
    return { problem: `module: '${module}' is TypeScript, and this Node does not strip types` }
  }
  let namespace: Readonly<Record<string, unknown>>
  try {
    // What a module gives is not known before it is looked at.
    namespace = (await import(pathToFileURL(module).href)) as Readonly<Record<string, unknown>>
  } catch (error) {
    const { errorClass, errorMessage } = describeError(error)
    return { problem: `module: '${module}' cannot be loaded: ${errorClass}: ${errorMessage.slice(0, 1_000)}` }
  }
  const run = exportOf(namespace, name)
  const when = exportOf(namespace, 'when')
  if (run === undefined) return { problem: `export: '${module}' has no export '${name}'` }
  if (!isFunction<Processor>(run)) return { problem: `export: '${name}' of '${module}' is no function` }
  if (when === undefined) return { run, when: null }
  if (!isFunction<When>(when)) return { problem: `module: 'when' of '${module}' is no function` }
  return { run, when }
}

/**
 * What CommonJS exports is the default export as a whole, and only some of its members are found by name; `exports.default`, as compilers
 * write it, is the default.
 */
function exportOf(namespace: Readonly<Record<string, unknown>>, name: string): unknown {
  const common = namespace['module.exports']
  const isObject = (typeof common === 'object' && common !== null) || typeof common === 'function'
  if (isObject && Object.hasOwn(common, name)) {
    // It has such a member.
    return (common as Readonly<Record<string, unknown>>)[name]
  }
  return Object.hasOwn(namespace, name) ? namespace[name] : undefined
}

/** What it takes and gives is checked when it is called. */
const isFunction = <Kind extends Processor | When>(value: unknown): value is Kind =>
  typeof value === 'function'

/** Throws a TypeError that says what is wrong. */
function decisionOf(result: unknown): Decision {
  if (!isRecord(result)) throw new TypeError(`the processor returned ${kindOf(result)}, not a result`)
  // Read once: it may answer differently each time.
  const { action, ...rest } = { ...result }
  switch (action) {
    case 'publish': {
      onlyKeys('the result', rest, ['change'])
      return { action, change: changeOf(rest.change) }
    }
    case 'discard': {
      onlyKeys('the result', rest, ['reason'])
      return { action, reason: givenText('reason', rest.reason)?.slice(0, MOST_REASON_CHARACTERS) ?? null }
    }
    case undefined:
      throw new TypeError("the processor returned an object without action; give 'publish' or 'discard'")
    default:
      throw new TypeError(`the processor returned an action that does not exist; give 'publish' or 'discard'`)
  }
}

const TEXTS = ['topic', 'type', 'key', 'correlationId'] as const

function changeOf(given: unknown): Change {
  if (given === undefined) return {}
  if (!isRecord(given)) throw new TypeError(`change of the result is ${kindOf(given)}, not an object`)
  const change = { ...given }
  onlyKeys('change', change, ['topic', 'type', 'key', 'payload', 'rawValue', 'correlationId'])
  const texts = TEXTS.flatMap((key) => {
    const text = givenText(`change.${key}`, change[key])
    return text === undefined ? [] : [[key, text] as const]
  })
  const value = changedValue(change.payload, change.rawValue)
  return { ...Object.fromEntries(texts), ...(value === undefined ? {} : { value }) }
}

function changedValue(payload: unknown, rawValue: unknown): Uint8Array | undefined {
  if (payload !== undefined && rawValue !== undefined) {
    throw new TypeError('change has both payload and rawValue; give one of them')
  }
  if (payload !== undefined) return new Uint8Array(writeJson(payload))
  if (rawValue === undefined) return undefined
  if (!(rawValue instanceof Uint8Array)) {
    throw new TypeError(`change.rawValue is ${kindOf(rawValue)}, not a Uint8Array`)
  }
  return new Uint8Array(rawValue)
}

function givenText(key: string, given: unknown): string | undefined {
  if (given === undefined || typeof given === 'string') return given
  throw new TypeError(`${key} is ${kindOf(given)}, not a string`)
}

function onlyKeys(where: string, given: object, known: readonly string[]): void {
  for (const key of Object.keys(given)) {
    if (!known.includes(key)) {
      throw new TypeError(`${where} has no '${key.slice(0, 80)}'; it has ${known.join(', ')}`)
    }
  }
}

/** Without its content. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

// As the server gave it. Not awaited: Node would complain on standard error of modules that never end loading.
void loadModules(workerData as readonly ModuleExport[]).then((loaded) => {
  if (loaded.entries === null) {
    post({ kind: 'broken', problems: loaded.problems })
    return
  }
  serve(loaded.entries)
  post({ kind: 'loaded', whens: loaded.entries.map(({ when }) => when !== null) })
})
