/**
 * The thread in which mappings run: it reads the payload, runs the expression and writes the new payload. It belongs to a process of
 * its own (mapping-process.ts), which the server ends when its time is up.
 */
import { parentPort } from 'node:worker_threads'
import jsonata from 'jsonata'
import { parseExactly } from './exact-json.ts'
import { differences } from './json-difference.ts'
import { MOST_LEVELS } from './json-pointer.ts'
import { isNestedDeeper } from './json-text.ts'
import { bindFunctions } from './mapping-functions.ts'
import { MappingNumbers } from './mapping-numbers.ts'
import { MappingRefusal } from './mapping-refusal.ts'
import { mappingResult } from './mapping-result.ts'
import { MOST_PAYLOAD_BYTES, payloadText, TOO_LARGE } from './payload-text.ts'
import { patchText } from './text-patch.ts'

/** A letter's payload, and the expression to run on it. */
export interface MappingRequest {
  readonly mapping: string
  readonly payload: Uint8Array
}

/** That the thread can be given a letter, or what became of the one that it was given. */
export type MappingAnswer =
  | { readonly kind: 'ready' }
  /** null: as it was. */
  | { readonly kind: 'mapped'; readonly payload: Uint8Array<ArrayBuffer> | null }
  | { readonly kind: 'refused'; readonly reason: string }

/** JSONata's own bounds: calls within calls, and the length of a list that an expression makes. */
const BOUNDS = { stack: 5_000, sequence: 1_000_000 }
const MOST_EXPRESSIONS = 8
const MOST_MESSAGE_CHARACTERS = 300

if (parentPort === null) throw new Error('mappings run in a thread')
const port = parentPort

// Names that lead from a value to the machinery behind it are names like all others here.
Reflect.deleteProperty(Object.prototype, '__proto__')
for (const one of [() => {}, async () => {}, function* () {}, async function* () {}]) {
  Reflect.deleteProperty(Object.getPrototypeOf(one), 'constructor')
}

/** Of the payload that is worked on: one at a time. */
let numbers = new MappingNumbers(null)

const expressions = new Map<string, jsonata.Expression>()

function compiled(mapping: string): jsonata.Expression {
  const known = expressions.get(mapping)
  if (known !== undefined) return known
  const expression = jsonata(mapping, BOUNDS)
  bindFunctions(expression, () => numbers)
  if (expressions.size === MOST_EXPRESSIONS) expressions.clear()
  expressions.set(mapping, expression)
  return expression
}

/** The new text; throws when there is none. */
async function mapped(mapping: string, text: string): Promise<string> {
  if (isNestedDeeper(text, MOST_LEVELS)) {
    throw new MappingRefusal(`the payload is nested more than ${MOST_LEVELS} levels deep`)
  }
  numbers = new MappingNumbers(parseExactly(text))
  const result: unknown = await compiled(mapping).evaluate(JSON.parse(text))
  const after = mappingResult(result, numbers)
  // Read anew: an expression can change its input.
  const operations = differences(parseExactly(text), after)
  const patched = patchText(text, operations, Number.POSITIVE_INFINITY)
  if (!patched.ok) throw new Error(`the mapping cannot be written: ${patched.reason}`)
  return patched.text
}

async function answer({ mapping, payload }: MappingRequest): Promise<MappingAnswer> {
  try {
    const read = payloadText(payload)
    if (!read.ok) return { kind: 'refused', reason: read.reason }
    const text = await mapped(mapping, read.text)
    if (text === read.text) return { kind: 'mapped', payload: null }
    const bytes = new TextEncoder().encode(text)
    if (bytes.length > MOST_PAYLOAD_BYTES) return { kind: 'refused', reason: TOO_LARGE }
    return { kind: 'mapped', payload: bytes }
  } catch (error) {
    return { kind: 'refused', reason: reasonOf(error) }
  }
}

/** JSONata throws objects with a message, and JavaScript when its stack is used up. */
function reasonOf(thrown: unknown): string {
  if (thrown instanceof MappingRefusal) return thrown.message
  if (thrown instanceof RangeError)
    return 'the mapping failed: it calls itself too often, or makes too long a text'
  const { message } = Object(thrown) as { readonly message?: unknown }
  const said = typeof message === 'string' && message !== '' ? message : 'it does not say why'
  return `the mapping failed: ${said.slice(0, MOST_MESSAGE_CHARACTERS)}`
}

port.on('message', async (request: MappingRequest) => {
  const given = await answer(request)
  // Branches of an expression that go on after another has failed are over before the next letter comes.
  setImmediate(() => {
    const buffers = given.kind === 'mapped' && given.payload !== null ? [given.payload.buffer] : []
    port.postMessage(given, buffers)
  })
})
port.postMessage({ kind: 'ready' } satisfies MappingAnswer)
