/** Runs mappings on payload texts. Only in the repair thread: an expression may take for ever, and all memory. */
import jsonata from 'jsonata'
import { parseExactly } from '../../core/json/exact.ts'
import { MOST_LEVELS } from '../../core/json/pointer.ts'
import { rewriteText } from '../../core/json/rewrite.ts'
import { isNestedDeeper } from '../../core/json/tokens.ts'
import type { TextResult } from './apply-recipe.ts'
import { isFunction, MappingNumbers, MappingRefusal, mappingResult } from './mapping-values.ts'
import { SWITCHED_OFF, whyOff } from './recipe.ts'

/** JSONata's own bounds: call depth, and length of a list. */
const BOUNDS = { stack: 5_000, sequence: 1_000_000 }
const MOST_EXPRESSIONS = 8
const MOST_MESSAGE_CHARACTERS = 300

/** Numbers of the one payload being worked on. */
let numbers = new MappingNumbers(null)

const expressions = new Map<string, jsonata.Expression>()

function compiled(mapping: string): jsonata.Expression {
  const known = expressions.get(mapping)
  if (known !== undefined) return known
  const expression = jsonata(mapping, BOUNDS)
  bindFunctions(expression)
  if (expressions.size === MOST_EXPRESSIONS) expressions.clear()
  expressions.set(mapping, expression)
  return expression
}

/** The mapped text, or why there is none. One at a time. */
export async function mappedText(mapping: string, text: string): Promise<TextResult> {
  try {
    return { ok: true, text: await mapped(mapping, text) }
  } catch (error) {
    return { ok: false, reason: reasonOf(error) }
  }
}

async function mapped(mapping: string, text: string): Promise<string> {
  if (isNestedDeeper(text, MOST_LEVELS)) {
    throw new MappingRefusal(`the payload is nested more than ${MOST_LEVELS} levels deep`)
  }
  numbers = new MappingNumbers(parseExactly(text))
  const result: unknown = await compiled(mapping).evaluate(JSON.parse(text))
  // The text is parsed again: an expression can change its input.
  return rewriteText(text, mappingResult(result, numbers))
}

/** JSONata throws objects with a message; JavaScript throws when its stack is used up. */
function reasonOf(thrown: unknown): string {
  if (thrown instanceof MappingRefusal) return thrown.message
  if (thrown instanceof RangeError)
    return 'the mapping failed: it calls itself too often, or makes too long a text'
  const { message } = Object(thrown) as { readonly message?: unknown }
  const text = typeof message === 'string' && message !== '' ? message : 'it does not say why'
  return `the mapping failed: ${text.slice(0, MOST_MESSAGE_CHARACTERS)}`
}

/** A function in JSONata's environments. */
interface Definition {
  readonly implementation: (this: object, ...given: unknown[]) => unknown
}

const own = async (name: string): Promise<Definition> =>
  // JSONata gives its own functions out as objects of this form.
  (await jsonata(`$${name}`).evaluate(null)) as Definition

const originals = { string: await own('string'), toMillis: await own('toMillis') }

/** A date that refuses to take anything from the clock. */
const NO_CLOCK = new Proxy(
  {},
  {
    get: () => {
      throw new MappingRefusal(
        '$toMillis needs a date: what the picture leaves out would be taken from the clock',
      )
    },
  },
)

/** Replaces JSONata's functions where ours differ. */
function bindFunctions(expression: jsonata.Expression): void {
  for (const name of SWITCHED_OFF) {
    expression.registerFunction(name, () => {
      throw new MappingRefusal(whyOff(name))
    })
  }
  // JSONata's own keeps 15 digits, and the `|…|…|` operator copies everything.
  expression.registerFunction('clone', (value: unknown) => value && copyOf(value), '<(oa)-:o>')
  const { string, toMillis } = originals
  expression.assign('string', {
    ...string,
    implementation: function (this: object, value: unknown, prettify: unknown) {
      const digits = typeof value === 'number' ? numbers.written(value) : undefined
      return digits ?? string.implementation.call(this, value, prettify)
    },
  } satisfies Definition)
  expression.assign('toMillis', {
    ...toMillis,
    implementation: (timestamp: unknown, picture: unknown) =>
      toMillis.implementation.call(
        { environment: { timestamp: NO_CLOCK } },
        picture === undefined ? inUtc(timestamp) : timestamp,
        picture,
      ),
  } satisfies Definition)
}

const copyOf = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_name, part: unknown) => (isFunction(part) ? '' : part)))

/** A time without a zone would be in the server's, and servers may differ. */
const inUtc = (timestamp: unknown): unknown =>
  typeof timestamp === 'string' && /T[\d:.]+$/.test(timestamp) ? `${timestamp}Z` : timestamp
