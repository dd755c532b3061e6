/** Runs mappings on the texts of payloads. For the thread of repairs: an expression may take for ever, and all memory. */
import jsonata from 'jsonata'
import { parseExactly } from './exact-json.ts'
import { MOST_LEVELS } from './json-pointer.ts'
import { rewriteText } from './json-rewrite.ts'
import { isNestedDeeper } from './json-text.ts'
import { bindFunctions } from './mapping-functions.ts'
import { MappingNumbers } from './mapping-numbers.ts'
import { MappingRefusal } from './mapping-refusal.ts'
import { mappingResult } from './mapping-result.ts'

/** JSONata's own bounds: calls within calls, and the length of a list that an expression makes. */
const BOUNDS = { stack: 5_000, sequence: 1_000_000 }
const MOST_EXPRESSIONS = 8
const MOST_MESSAGE_CHARACTERS = 300

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

/** The text that a mapping makes of another, which is JSON; or why there is none. One at a time. */
export async function mappedText(
  mapping: string,
  text: string,
): Promise<{ readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string }> {
  try {
    return { ok: true, text: await mapped(mapping, text) }
  } catch (error) {
    return { ok: false, reason: reasonOf(error) }
  }
}

/** The new text; throws when there is none. */
async function mapped(mapping: string, text: string): Promise<string> {
  if (isNestedDeeper(text, MOST_LEVELS)) {
    throw new MappingRefusal(`the payload is nested more than ${MOST_LEVELS} levels deep`)
  }
  numbers = new MappingNumbers(parseExactly(text))
  const result: unknown = await compiled(mapping).evaluate(JSON.parse(text))
  // The text is read anew for this: an expression can change its input.
  return rewriteText(text, mappingResult(result, numbers))
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
