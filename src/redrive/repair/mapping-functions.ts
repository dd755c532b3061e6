/** JSONata's functions, where ours differ from its own. */
import jsonata from 'jsonata'
import { SWITCHED_OFF, whyOff } from './mapping-language.ts'
import type { MappingNumbers } from './mapping-numbers.ts'
import { MappingRefusal } from './mapping-refusal.ts'

/** A function of JSONata's, as its environments hold it. */
interface Definition {
  readonly implementation: (this: object, ...given: unknown[]) => unknown
}

const own = async (name: string): Promise<Definition> =>
  // JSONata gives its own functions out as objects of this form.
  (await jsonata(`$${name}`).evaluate(null)) as Definition

const originals = { string: await own('string'), toMillis: await own('toMillis') }

/** Asked for what it takes from the clock, a date refuses. */
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

/** Puts them into an expression; `numbers` gives those of the payload that it runs on. */
export function bindFunctions(expression: jsonata.Expression, numbers: () => MappingNumbers): void {
  for (const name of SWITCHED_OFF) {
    expression.registerFunction(name, () => {
      throw new MappingRefusal(whyOff(name))
    })
  }
  // JSONata's own copies numbers with 15 digits, and the `|…|…|` operator copies everything.
  expression.registerFunction('clone', (value: unknown) => value && copyOf(value), '<(oa)-:o>')
  const { string, toMillis } = originals
  expression.assign('string', {
    ...string,
    implementation: function (this: object, value: unknown, prettify: unknown) {
      const digits = typeof value === 'number' ? numbers().written(value) : undefined
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

const isFunction = (value: unknown): boolean =>
  typeof value === 'function' ||
  (typeof value === 'object' &&
    value !== null &&
    ('_jsonata_lambda' in value || '_jsonata_function' in value))

/** Times without a zone are meant in that of the server, else, and servers may stand in different ones. */
const inUtc = (timestamp: unknown): unknown =>
  typeof timestamp === 'string' && /T[\d:.]+$/.test(timestamp) ? `${timestamp}Z` : timestamp
